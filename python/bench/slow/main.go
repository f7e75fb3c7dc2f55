// Slow puts a slower network between ranks of this machine: proxies that delay what they pass on.
//
//	go run ./python/bench/slow 500µs 127.0.0.1:7001 127.0.0.1:7002
//
// For each address, at which a rank listens or will, it prints one that leads there. It ends when its
// standard input does. Program python/bench/delayed.py uses it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/godwit-ps/godwit/internal/slownet"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) < 2 {
		return errors.New("want a latency and addresses")
	}
	latency, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	n := slownet.New(len(args)-1, latency, 0)
	defer func() { err = errors.Join(err, n.Close()) }()
	for _, target := range args[1:] {
		addr, err := n.Listen(target)
		if err != nil {
			return err
		}
		fmt.Println(addr)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
