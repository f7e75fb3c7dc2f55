package etcd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// A node joins a run of one at an etcd that this process runs for it. It is handed
// to node.Start in a node.Config.
func ExampleAccess() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s, err := server.Start(ctx, server.Config{})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	at := etcd.Access{Endpoints: s.Endpoints(), Token: s.Token()}
	session, err := at.Join(ctx, coord.Config{Run: "example", Nodes: 1, Addr: "127.0.0.1:7000"})
	if err != nil {
		panic(err)
	}
	fmt.Println(session.Members())
	if err := session.Close(ctx); err != nil {
		panic(err)
	}
	// Output: [node 0 (127.0.0.1:7000)]
}
