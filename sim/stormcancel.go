package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
)

// Cancelled counts the calls of a storm that ended with their contexts.
type Cancelled struct {
	Contexts int // that were given to a call and were to end
	Pulls    int // calls that gave up, after they had waited …
	Pushes   int // … likewise
	Sets     int // … likewise
	Syncs    int // … calls of WaitSync
	Alls     int // … calls of SyncAll
	Barriers int // … likewise
	Others   int // … calls of any other method
	Unissued int // pushes and sets of which nobody knows whether they take effect
}

// Add adds what was cancelled in another storm.
func (c *Cancelled) Add(o Cancelled) {
	c.Contexts += o.Contexts
	c.Pulls += o.Pulls
	c.Pushes += o.Pushes
	c.Sets += o.Sets
	c.Syncs += o.Syncs
	c.Alls += o.Alls
	c.Barriers += o.Barriers
	c.Others += o.Others
	c.Unissued += o.Unissued
}

// after has something happen at a host, at a moment to come.
func (c *Cluster) after(h *host, d time.Duration, what func()) {
	c.queue.push(event{at: c.now + int64(d), kind: tells, host: h.id, tell: what})
}

// An ending is the context of one call. In a storm that cancels, it ends in one
// call of four: before the call begins, or at a moment that the seed draws.
type ending struct {
	context.Context
	x     *stormWorker
	cause error // nil: it does not end
	live  bool  // it had not ended when it was made
}

// newCancels returns the source of a worker's contexts that end; nil in half of
// the storms, which have none.
func newCancels(seed uint64, id int) *rand.Rand {
	if godwit.Hash64(seed^0xca9ce1)%2 == 0 {
		return nil
	}
	return rand.New(rand.NewPCG(seed, uint64(id)+0xca9ce1))
}

func (x *stormWorker) ending(ctx context.Context) *ending {
	p := &ending{Context: ctx, x: x}
	if x.cancels == nil || x.cancels.IntN(4) > 0 {
		return p
	}
	x.cancelled.Contexts++
	p.cause = fmt.Errorf("worker %d lost idleLimit", x.id)
	var cancel context.CancelCauseFunc
	p.Context, cancel = context.WithCancelCause(ctx)
	if x.cancels.IntN(4) == 0 {
		cancel(p.cause)
		return p
	}
	p.live = true
	most := []int64{30_000, 300_000, 3_000_000}[x.cancels.IntN(3)]
	x.c.after(x.c.hosts[x.node], time.Duration(x.cancels.Int64N(most)), func() { cancel(p.cause) })
	return p
}

// gaveUp takes what a call returned, and reports whether that was because its
// context ended. It returns other errors, and one if the call does not say why it
// ended. Calls that waited count in n.
func (p *ending) gaveUp(n *int, err error) (bool, error) {
	if err == nil || p.cause == nil || p.Err() == nil || context.Cause(p) != p.cause {
		return false, err
	}
	var e *godwit.OpError
	if !errors.Is(err, p.cause) || !errors.As(err, &e) {
		return false, fmt.Errorf("worker %d: the context of a call ended by %q, the call returns %T: %w", p.x.id, p.cause, err, err)
	}
	if p.live {
		*n++
	}
	return true, nil
}

// stale is what a storm writes to buffers of calls that it gave up.
const stale = -12345

// giveUp takes note of a buffer that nobody may write to any more.
func (x *stormWorker) giveUp(buf []float32) {
	for i := range buf {
		buf[i] = stale
	}
	x.abandoned = append(x.abandoned, buf)
}

// untouched looks at the buffers of calls that were given up.
func (s *storm) untouched() error {
	for _, buf := range s.abandoned {
		for i, v := range buf {
			if v != stale {
				return fmt.Errorf("sim: a pull that was given up wrote %v to its buffer of %d floats, at %d, after it had returned", v, len(buf), i)
			}
		}
	}
	return nil
}

// insist calls until the call is over without having given up, with other accesses
// in between if the worker may make some.
func (x *stormWorker) insist(ctx context.Context, n *int, call func(context.Context) error, amid func() error) error {
	for {
		p := x.ending(ctx)
		gave, err := p.gaveUp(n, call(p))
		if err != nil || !gave {
			return err
		}
		if amid != nil {
			if err := amid(); err != nil {
				return err
			}
		}
	}
}

// barrier passes a barrier, which a worker may give up and come back to. It has
// arrived all the same: what it does meanwhile comes after the barrier.
func (x *stormWorker) barrier(ctx context.Context, amid func() error) error {
	return x.meet(ctx, &x.cancelled.Barriers, x.w.Barrier, amid)
}

// meet is barrier by a call that has one.
func (x *stormWorker) meet(ctx context.Context, n *int, call func(context.Context) error, amid func() error) error {
	if x.bounds != nil {
		x.bounds.goOn(x.id, (*history.Clocks).Barrier)
	}
	return x.insist(ctx, n, call, amid)
}

// amidBarrier is what a worker does between two calls that wait for one barrier.
// Clocks do not count there, so it neither advances nor waits for its operations.
func (x *stormWorker) amidBarrier(ctx context.Context) error {
	x.amid = true
	defer func() { x.amid = false }()
	keys := x.some()
	switch x.cancels.IntN(5) {
	case 0:
		return x.pull(ctx, keys)
	case 1:
		return x.push(ctx, keys)
	case 2:
		return x.sync(ctx)
	case 3:
		return x.pullIfLocal(keys[0])
	default:
		return nil
	}
}
