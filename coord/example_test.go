package coord_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
)

// Two nodes find each other, exchange something, and one of them fails. The other
// one learns which node it was, and why.
func ExampleSession() {
	hub, err := mem.New(coord.Config{Run: "example", Nodes: 2})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	nodes := make([]coord.Session, 2)
	var wg sync.WaitGroup
	for range nodes {
		wg.Go(func() {
			s, err := hub.Join(ctx, "in this process")
			if err != nil {
				panic(err)
			}
			nodes[s.Self()] = s
			all, err := s.Exchange(ctx, "greetings", fmt.Appendf(nil, "hello from node %d", s.Self()))
			if err != nil {
				panic(err)
			}
			if s.Self() == 1 {
				fmt.Printf("%s, %s\n", all[0], all[1])
			}
		})
	}
	wg.Wait()

	nodes[0].Fail(errors.New("the disk is full"))
	<-nodes[1].Done()
	var m *coord.MemberError
	if err := nodes[1].Err(); errors.As(err, &m) && errors.Is(err, coord.ErrFailed) {
		fmt.Printf("node %d: %v\n", m.Member.ID, m.Err)
	}
	for _, s := range nodes {
		if err := s.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// hello from node 0, hello from node 1
	// node 0: node failed: the disk is full
}
