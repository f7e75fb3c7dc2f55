package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is how nodes leave each other at the end of a run that went well.
// They meet at a barrier of the coordinator. A node that is through it says
// goodbye on each connection, as the last frame, and closes when all others have
// said it too. So whoever hears a goodbye knows that all nodes have come to the
// end, though its own answer of the coordinator may be late; and a connection
// that ends without one has lost its node.

// A parting is what a node knows of the end of its run.
type parting struct {
	mu   preempt.Mutex
	here context.CancelCauseFunc // ends this node's wait at the barrier; nil: it has not come there

	all   chan struct{} // closed when it is known here that all nodes have come to the end
	still []bool        // by peer: its connection may still bring something
	left  int           // of these
	quiet chan struct{} // closed when none are left
}

func newParting(nodes int) *parting {
	p := &parting{all: make(chan struct{}), still: make([]bool, nodes), left: nodes - 1, quiet: make(chan struct{})}
	for i := range p.still {
		p.still[i] = true
	}
	return p
}

// errAllHere ends the wait at the barrier of a node that was told of its end.
var errAllHere = errors.New("all nodes have come to the end")

// Leave waits until all nodes have come to the end of the run, and then, for
// no longer than the lease, until their connections have brought everything. The barrier
// is the session's.
func (r *Run) Leave(ctx context.Context, barrier func(ctx context.Context, name string) error, lease time.Duration) error {
	meeting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.parting.come(cancel)
	err := barrier(meeting, "close node")
	if err != nil && context.Cause(meeting) != errAllHere {
		return err
	}
	r.parting.complete()
	for _, l := range r.links.All {
		l.Goodbye()
	}
	r.host.Idle(lease, r.parting.quiet, ctx.Done())
	return nil
}

// come notes that this node is at the end. From then on, cancel ends its wait.
func (p *parting) come(cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.here = cancel
}

// complete notes that all nodes have come to the end.
func (p *parting) complete() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.completeLocked()
}

func (p *parting) completeLocked() {
	if !p.isComplete() {
		close(p.all)
	}
}

// isComplete reports whether all nodes have come to the end. From then on,
// connections that end have lost nobody.
func (p *parting) isComplete() bool {
	select {
	case <-p.all:
		return true
	default:
		return false
	}
}

// Over is closed when it is known here that all nodes have come to the end of the run.
func (r *Run) Over() <-chan struct{} { return r.parting.all }

// Goodbye takes the goodbye of a peer. It is called by who takes the peer's frames.
func (r *Run) Goodbye(from godwit.NodeID, frame []byte) error {
	if err := wire.CheckGoodbye(frame); err != nil {
		return err
	}
	p := r.parting
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.here == nil {
		return fmt.Errorf("said goodbye before this node had come to the end of the run")
	}
	p.completeLocked()
	p.here(errAllHere)
	p.goneLocked(from)
	return nil
}

// gone notes that nothing more comes from a peer.
func (p *parting) gone(peer godwit.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.goneLocked(peer)
}

func (p *parting) goneLocked(peer godwit.NodeID) {
	if !p.still[peer] {
		return
	}
	p.still[peer] = false
	if p.left--; p.left == 0 {
		close(p.quiet)
	}
}
