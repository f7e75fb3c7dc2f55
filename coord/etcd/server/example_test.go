package server_test

import (
	"context"
	"fmt"
	"log"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// A run of one node that is coordinated by an etcd in its own process.
func Example() {
	ctx := context.Background()
	s, err := server.Start(ctx, server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	at := etcd.Access{Endpoints: s.Endpoints(), Token: s.Token()}
	session, err := at.Join(ctx, coord.Config{Run: "example", Nodes: 1, Addr: "127.0.0.1:7000"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Self(), session.Members())
	if err := session.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Nodes that are still at work would take the closed server for a lost coordinator.
	if err := at.Drain(ctx, "example"); err != nil {
		log.Fatal(err)
	}
	// Output: 0 [node 0 (127.0.0.1:7000)]
}
