// Etcd runs an etcd for the tests of the Python package, whose library has the client only.
//
//	go run ./python/tests/etcd [CERT KEY CA]
//
// It prints where it is and its token, and ends when its standard input does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	var cfg server.Config
	switch len(args) {
	case 0:
	case 3:
		cfg.TLS = &server.TLSFiles{Cert: args[0], Key: args[1], CA: args[2]}
	default:
		return errors.New("want no argument, or the files of a certificate, a key and an authority")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := server.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Println(s.Endpoints()[0], s.Token())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
