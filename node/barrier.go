package node

import (
	"context"
	"fmt"
	"sync"
)

// A barrier collects the workers of a node; the last to arrive goes to the
// coordinator for all of them. As with the coordinator, a worker that gave up
// waiting has arrived all the same, and its next call waits for the same
// barrier again.
type barrier struct {
	mu     sync.Mutex
	left   int      // workers missing in round
	round  *round   // nil: nobody is here
	gaveUp []*round // by worker: the round that it did not see the end of
}

type round struct {
	done chan struct{}
	err  error // set before done is closed
}

// arrive returns the round that a worker waits for and whether it is the last
// to come.
func (b *barrier) arrive(worker int) (r *round, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.gaveUp[worker]; r != nil {
		b.gaveUp[worker] = nil
		return r, false
	}
	if b.round == nil {
		b.round, b.left = &round{done: make(chan struct{})}, len(b.gaveUp)
	}
	r = b.round
	if b.left--; b.left == 0 {
		b.round = nil
	}
	return r, b.round == nil
}

func (b *barrier) wait(ctx context.Context, n *Node, worker int) error {
	if err := n.failed(); err != nil {
		return err
	}
	r, last := b.arrive(worker)
	if last {
		if len(n.peers) > 1 {
			r.err = n.cfg.Session.Barrier(ctx, "workers")
		}
		close(r.done)
		return r.err
	}
	switch n.world.Wait(r.done, ctx.Done(), n.done) {
	case 1:
		b.mu.Lock()
		b.gaveUp[worker] = r
		b.mu.Unlock()
		return fmt.Errorf("waiting for this node's other workers: %w", context.Cause(ctx))
	case 2:
		return n.failed()
	}
	return r.err
}
