package node

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/operation"
)

// PullAfter: see package staleness.
func (w *worker) PullAfter(ctx context.Context, after godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	const what = "pull"
	if err := w.check(what, keys, len(dst)); err != nil {
		return 0, err
	}
	if err := w.n.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	for _, k := range keys {
		if i, _ := w.n.model.Locate(k); w.n.model.Table(i).Staleness == godwit.Eventual {
			return 0, w.fail(what, keys, fmt.Errorf("%w: pull after clock %d: table %q must have bounded staleness, be it far", godwit.ErrBound, after, w.n.model.Table(i).Name))
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	if w.n.windows != nil {
		if err := w.inWindow(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	b := w.n.bound
	at := w.clock.TickAt(after)
	w.watched(keys)
	if b.Reaches(at) {
		return w.serve(ctx, what, wire.Pull, keys, dst, &w.count.pull)
	}
	if err := w.ops.Reserve(len(keys)); err != nil {
		return 0, w.fail(what, keys, err)
	}
	w.reserved = len(keys)
	w.after = at
	defer func() {
		w.ops.Return(w.reserved)
		w.after, w.reserved = 0, 0
	}()
	if err := w.reads(keys); err != nil {
		return 0, err
	}
	add(&w.count.calls, 1)
	w.every(keys)
	return w.request(ctx, what, wire.Pull, keys, dst, &w.count.pull)
}

// delayed says who holds up an operation that waits for a tick.
func (w *worker) delayed(o *operation.Op) error {
	behind, _ := w.n.bound.Behind(o.After)
	return fmt.Errorf("waiting for updates before %v: %s", o.After, behind)
}

// awaited notes that the worker waits for an operation that waits for a tick.
func (w *worker) awaited(o *operation.Op) error {
	if w.clock.Tick().Before(o.After) {
		return w.fail(o.What, nil, fmt.Errorf("%w: it waits for updates before %v, and this worker is at %v: advance first", godwit.ErrBound, o.After, w.clock.Tick()))
	}
	w.n.bound.Want(o.After)
	return nil
}

// Finish has others not wait for the worker until the next Barrier.
func (w *worker) Finish() {
	w.enter()
	defer w.leave()
	if b := w.n.bound; b != nil {
		b.Enter(w.clock)
	}
}
