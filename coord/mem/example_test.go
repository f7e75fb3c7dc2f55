package mem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
)

// A test loses a node of a run, and sees what the others see.
func ExampleHub_Kill() {
	hub, err := mem.New(coord.Config{Run: "example", Nodes: 3})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	nodes := make([]coord.Session, 3)
	var wg sync.WaitGroup
	for range nodes {
		wg.Go(func() {
			s, err := hub.Join(ctx, "in this process")
			if err != nil {
				panic(err)
			}
			nodes[s.Self()] = s
		})
	}
	wg.Wait()

	hub.Kill(1)
	for _, s := range nodes {
		<-s.Done()
		fmt.Printf("node %d lost a peer: %t\n", s.Self(), errors.Is(s.Err(), godwit.ErrPeerLost))
		if err := s.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// node 0 lost a peer: true
	// node 1 lost a peer: true
	// node 2 lost a peer: true
}
