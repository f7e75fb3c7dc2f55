package worker

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/staleness"
	"github.com/godwit-ps/godwit/node/internal/watch"
)

// follow notes what waits for a push or set of the keys that were missed.
func (w *Worker) follow(o *operation.Op, kind wire.Kind, keys []godwit.Key) {
	if w.req.after != 0 {
		w.ops.Delay(o, w.req.after)
		w.req.reserved = 0 // the operation has it now
	}
	if kind != wire.Push && kind != wire.Set {
		return
	}
	settles, window := false, staleness.Unlimited
	for m := 0; m < len(w.rows.Miss); m += 2 {
		i, _ := w.g.Model.Locate(keys[w.rows.Miss[m]])
		settles = settles || w.g.Model.Table(i).Staleness != godwit.Eventual
		if w.g.windows != nil {
			window = min(window, w.g.windows[i])
		}
	}
	deadline := uint64(0)
	if window != staleness.Unlimited {
		deadline = uint64(w.Clock()) + uint64(window) + 1 // so that none is 0
	}
	if settles || deadline != 0 {
		w.ops.Follow(o, keys[w.rows.Miss[0]], w.clock.Tick(), settles, deadline)
	}
}

// inWindow waits for pushes and sets that have been under way for longer than
// their tables' windows.
func (w *Worker) inWindow(ctx context.Context, what string, keys []godwit.Key) error {
	k, late := w.overdue()
	if !late {
		return nil
	}
	defer w.blockedSince(w.g.Host.Now())
	w.out.Flush()
	for ; late; k, late = w.overdue() {
		if err := w.until(ctx, what, keys, w.ops.Moved(), watch.ForWindow, func() (string, godwit.NodeID) {
			return fmt.Sprintf("waiting for a push of key %d to leave its window: ", k), w.g.blame(k)
		}); err != nil {
			return err
		}
	}
	return nil
}

// overdue returns a key of a push or set that has been under way for longer than its table's window.
func (w *Worker) overdue() (k godwit.Key, late bool) {
	if w.g.windows != nil {
		k, late = w.ops.Overdue(uint64(w.Clock()) + 1)
	}
	return k, late
}

// blockedSince counts a call that waited for a bound.
func (w *Worker) blockedSince(began int64) {
	add(&w.count.held, 1)
	add(&w.count.heldNanos, uint64(w.g.Host.Now()-began))
}

// awaitBound waits until the worker may read keys.
func (w *Worker) awaitBound(ctx context.Context, what string, keys []godwit.Key) error {
	b, waiter := w.g.Bound, w.g.Bound.Waiter(w.id.Local)
	defer w.blockedSince(w.g.Host.Now())
	for b.Await(waiter, keys) {
		err := w.until(ctx, what, keys, waiter.Granted, watch.ForBound, func() (string, godwit.NodeID) { return b.GiveUp(waiter) })
		if err != nil {
			return err
		}
	}
	return nil
}

// BoundAge is that of a godwit.Worker.
func (w *Worker) BoundAge(steps godwit.Clock) {
	w.enter()
	defer w.leave()
	w.age.Bound(w.g.Rounds.Echoes, steps, w.clock.Now())
}

// awaitAge waits until the other nodes have made rounds since one of the worker's last steps.
func (w *Worker) awaitAge(ctx context.Context, what string, keys []godwit.Key) (err error) {
	if w.age.Over(w.clock.Now()) == nil {
		return nil
	}
	defer w.blockedSince(w.g.Host.Now())
	w.out.Flush()
	defer w.g.Rounds.Echoes.Await()()
	for done := w.age.Over(w.clock.Now()); err == nil && done != nil; done = w.age.Over(w.clock.Now()) {
		err = w.until(ctx, what, keys, done, watch.ForBound, w.age.Behind)
	}
	return err
}
