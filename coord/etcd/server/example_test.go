package server_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// A server lets in who knows its token, and nobody else.
func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s, err := server.Start(ctx, server.Config{Token: "a-secret-of-mine"})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	for _, token := range []string{"a-secret-of-mine", "something-guessed"} {
		at := etcd.Access{Endpoints: s.Endpoints(), Token: token}
		err := at.Configure(ctx, "example", []byte("what is trained"))
		fmt.Println("refused:", errors.Is(err, coord.ErrAccess))
	}
	// Output:
	// refused: false
	// refused: true
}
