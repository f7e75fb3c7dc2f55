package transport_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
)

// Every node of a run gets a connection to every other one, which has proved that
// it is the member that it says.
func ExampleMesh() {
	const nodes = 3
	network, secret := &mem.Switch{}, make([]byte, transport.MinSecret)
	peers := make([]transport.Peer, nodes)
	listeners := make([]transport.Listener, nodes)
	for i := range nodes {
		l, err := network.Listen(fmt.Sprint("node-", i))
		if err != nil {
			panic(err)
		}
		defer l.Close()
		listeners[i], peers[i] = l, transport.Peer{ID: godwit.NodeID(i), Addr: l.Addr()}
	}

	var wg sync.WaitGroup
	found := make([]int, nodes)
	for i, l := range listeners {
		wg.Go(func() {
			self := wire.Hello{Run: "example", From: peers[i].ID}
			conns, err := transport.Mesh(context.Background(), network, l, self, secret, peers)
			if err != nil {
				panic(err)
			}
			for id, c := range conns {
				if c.Peer().From == id {
					found[i]++
				}
				defer c.Close()
			}
		})
	}
	wg.Wait()
	fmt.Println("peers of each node:", found)
	// Output: peers of each node: [2 2 2]
}
