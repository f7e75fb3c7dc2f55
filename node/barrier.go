package node

import (
	"context"
	"fmt"
	"sync"
)

// A barrier collects the workers of a node; the last to arrive goes to the
// coordinator for all of them.
type barrier struct {
	mu      sync.Mutex
	workers int
	round   *round // nil: nobody is here
}

type round struct {
	here []bool // by worker: one that gave up waiting and comes again counts once
	left int
	done chan struct{}
	err  error // set before done is closed
}

func (b *barrier) wait(ctx context.Context, n *Node, worker int) error {
	if err := n.failed(); err != nil {
		return err
	}
	b.mu.Lock()
	if b.round == nil {
		b.round = &round{here: make([]bool, b.workers), left: b.workers, done: make(chan struct{})}
	}
	r := b.round
	if !r.here[worker] {
		r.here[worker] = true
		r.left--
	}
	last := r.left == 0
	if last {
		b.round = nil
	}
	b.mu.Unlock()
	if last {
		if len(n.peers) > 1 {
			r.err = n.cfg.Session.Barrier(ctx, "workers")
		}
		close(r.done)
		return r.err
	}
	switch n.world.Wait(r.done, ctx.Done(), n.done) {
	case 1:
		return fmt.Errorf("waiting for this node's other workers: %w", context.Cause(ctx))
	case 2:
		return n.failed()
	}
	return r.err
}
