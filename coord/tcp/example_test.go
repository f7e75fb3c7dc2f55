package tcp_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/tcp"
)

// Two nodes meet at a coordinator that one of their processes serves.
func Example() {
	ctx := context.Background()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, err := tcp.Serve(ln, coord.Config{Run: "example", Nodes: 2}, "a secret that both know", godwit.NoNode)
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for seat := range godwit.NodeID(2) {
		wg.Go(func() {
			cfg := coord.Config{Run: "example", Nodes: 2, Addr: fmt.Sprintf("10.0.0.%d:2391", seat)}
			s, err := tcp.Join(ctx, nil, server.Addr(), "a secret that both know", seat, cfg)
			if err != nil {
				log.Fatal(err)
			}
			if err := s.Barrier(ctx, "all are here"); err != nil {
				log.Fatal(err)
			}
			if s.Self() == 0 {
				fmt.Println(s.Members())
			}
			if err := s.Close(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	if err := server.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: [node 0 (10.0.0.0:2391) node 1 (10.0.0.1:2391)]
}
