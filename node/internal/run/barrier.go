package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Barrier collects the workers of a node; once the last has arrived, the node
// goes to the coordinator for all of them. As with the coordinator, a worker that gave up
// waiting has arrived all the same, and its next call waits for the same
// barrier again. All workers have to meet by the same call, Barrier or SyncAll: else it fails for all of them.
type Barrier struct {
	host  *host.Host
	cross func(ctx context.Context, name string, calls []byte) ([][]byte, error) // the session's exchange; nil: there is no other node

	mu     preempt.Mutex
	left   int      // workers missing in round
	round  *round   // nil: nobody is here
	gaveUp []*round // by worker: the round that it did not see the end of
}

// Barrier returns the barrier of a node with so many workers. cross is the exchange of the node's
// session, which is called with a name and with the calls by which workers came, by one goroutine at a time.
func (r *Run) Barrier(workers int, cross func(ctx context.Context, name string, calls []byte) ([][]byte, error)) *Barrier {
	b := &Barrier{host: r.host, gaveUp: make([]*round, workers)}
	if !r.links.Alone() {
		b.cross = func(ctx context.Context, name string, calls []byte) ([][]byte, error) {
			all, err := cross(ctx, name, calls)
			if err != nil && r.session.Err() != nil { // which Watch is about to hear
				r.over()
				return nil, r.host.Err()
			}
			return all, err
		}
	}
	return b
}

// A round is one meeting of the workers.
type round struct {
	done  chan struct{}
	calls []string // by which workers of this node came, each once
	err   error    // set before done is closed

	mu        preempt.Mutex
	interrupt context.CancelCauseFunc // ends the call to the coordinator; nil: workers of this node are missing
	asking    []chan struct{}         // closed when said is for them
	said      error                   // what the coordinator said last
}

// arrive returns the round that a worker waits for and whether it is the last
// to come.
func (b *Barrier) arrive(worker int, call string) (r *round, last bool) {
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
	if !slices.Contains(r.calls, call) {
		r.calls = append(r.calls, call)
	}
	if b.left--; b.left == 0 {
		b.round = nil
	}
	return r, b.round == nil
}

// Wait returns when all workers of all nodes have come as often as this one. It is for the
// worker's goroutine. call is what the worker has called; it does not matter where the call goes on with one that was given up.
// Errors are that of ctx, with who is missing, that others have called something else, or why the run is over.
func (b *Barrier) Wait(ctx context.Context, worker int, call string) error {
	if err := b.host.Err(); err != nil {
		return err
	}
	r, last := b.arrive(worker, call)
	if last {
		r.cross(b)
	}
	switch b.host.Wait(r.done, ctx.Done(), b.host.Done()) {
	case 1:
		if err := r.missing(b.host, b.host.Late(ctx, context.Cause(ctx))); err != nil {
			b.mu.Lock()
			b.gaveUp[worker] = r
			b.mu.Unlock()
			return err
		}
		return nil
	case 2:
		return b.host.Err()
	}
	return r.err
}

// cross goes to the coordinator, once all workers of the node are here. It waits
// there for as long as the node lives: none of the workers' contexts bounds the
// others' wait.
func (r *round) cross(b *Barrier) {
	mine := []byte(strings.Join(r.calls, and))
	if b.cross == nil {
		r.err = same([][]byte{mine})
		close(r.done)
		return
	}
	r.mu.Lock()
	ctx := r.next(b.host)
	r.mu.Unlock()
	b.host.Go(func() {
		defer close(r.done)
		for ctx != nil {
			all, err := b.cross(ctx, "workers", mine)
			r.interrupt(nil)
			if err == nil {
				r.err = same(all)
				return
			}
			r.err = err
			ctx = r.tell(b.host, err)
		}
	})
}

// and lies between the calls of a node's workers that have made different ones.
const and = " and "

// same returns an error if workers have come by different calls, which are given by node.
func same(calls [][]byte) error {
	for id, call := range calls {
		switch {
		case bytes.Contains(call, []byte(and)):
			return fmt.Errorf("workers of node %d have called %s: all workers have to make the same call", id, call)
		case !bytes.Equal(call, calls[0]):
			return fmt.Errorf("workers of node 0 have called %s, and those of node %d %s: all workers have to make the same call", calls[0], id, call)
		}
	}
	return nil
}

// next returns the context of the next call to the coordinator. The caller holds r.mu.
func (r *round) next(h *host.Host) context.Context {
	ctx, cancel := context.WithCancelCause(h.Life())
	r.interrupt = cancel
	return ctx
}

// missing says who has not come, to a worker that gives up for a cause. The
// coordinator tells when a call to it ends.
func (r *round) missing(h *host.Host, cause error) error {
	answer := make(chan struct{})
	r.mu.Lock()
	if r.interrupt == nil {
		r.mu.Unlock()
		return fmt.Errorf("waiting for this node's other workers: %w", cause)
	}
	r.asking = append(r.asking, answer)
	r.interrupt(cause)
	r.mu.Unlock()
	switch h.Wait(answer, r.done, h.Done()) {
	case 1:
		return r.err
	case 2:
		return h.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.said, cause) {
		return r.said
	}
	return fmt.Errorf("%v: %w", r.said, cause)
}

// tell gives what the coordinator said to those who gave up. If there are any, and the node
// lives, the others wait for the same barrier again: tell returns the context of that call.
// Who gives up from then on interrupts it.
func (r *round) tell(h *host.Host, said error) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.asking {
		close(c)
	}
	some := len(r.asking) > 0
	r.asking, r.said = nil, said
	if !some || h.Life().Err() != nil {
		return nil
	}
	return r.next(h)
}
