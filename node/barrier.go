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
	here    int
	round   *round
}

type round struct {
	done chan struct{}
	err  error // set before done is closed
}

func (b *barrier) wait(ctx context.Context, n *Node) error {
	if err := n.failed(); err != nil {
		return err
	}
	b.mu.Lock()
	if b.round == nil {
		b.round = &round{done: make(chan struct{})}
	}
	r := b.round
	b.here++
	last := b.here == b.workers
	if last {
		b.here, b.round = 0, nil
	}
	b.mu.Unlock()
	if last {
		if len(n.peers) > 1 {
			r.err = n.cfg.Session.Barrier(ctx, "workers")
		}
		close(r.done)
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for this node's other workers: %w", context.Cause(ctx))
	case <-n.done:
		return n.failed()
	}
}
