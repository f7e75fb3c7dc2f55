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

// unlimited is the window of a table that has none.
var unlimited = staleness.LimitOf(godwit.Eventual)

// windowsOf returns the windows of the tables, nil if none has one.
func windowsOf(m *godwit.Model) []int64 {
	ws := make([]int64, m.Tables())
	some := false
	for i := range ws {
		ws[i] = staleness.LimitOf(m.Table(i).Window)
		some = some || ws[i] != unlimited
	}
	if !some {
		return nil
	}
	return ws
}

// follow notes what waits for a push or set of the keys that were missed.
func (w *Worker) follow(o *operation.Op, kind wire.Kind, keys []godwit.Key) {
	if w.req.after != 0 {
		w.ops.Delay(o, w.req.after)
		w.req.reserved = 0 // the operation has it now
	}
	if kind != wire.Push && kind != wire.Set {
		return
	}
	settles, window := false, unlimited
	for m := 0; m < len(w.rows.Miss); m += 2 {
		i, _ := w.g.Model.Locate(keys[w.rows.Miss[m]])
		settles = settles || w.g.Model.Table(i).Staleness != godwit.Eventual
		if w.g.windows != nil {
			window = min(window, w.g.windows[i])
		}
	}
	deadline := uint64(0)
	if window != unlimited {
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
	began := w.g.Host.Now()
	defer func() { w.blocked(w.g.Host.Now() - began) }()
	w.out.Flush()
	for ; late; k, late = w.overdue() {
		switch w.pause(ctx, w.ops.Moved(), watch.ForWindow) {
		case 1:
			return w.failAt(w.g.blame(k), what, keys, fmt.Errorf("waiting for a push of key %d to leave its window: %w", k, w.g.Host.Late(ctx, context.Cause(ctx))))
		case 2:
			return w.fail(what, keys, w.g.Host.Err())
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

// blocked counts a call that waited for a bound.
func (w *Worker) blocked(nanos int64) {
	add(&w.count.held, 1)
	add(&w.count.heldNanos, uint64(nanos))
}

// awaitBound waits until the worker may read keys.
func (w *Worker) awaitBound(ctx context.Context, what string, keys []godwit.Key) error {
	b := w.g.Bound
	began := w.g.Host.Now()
	defer func() { w.blocked(w.g.Host.Now() - began) }()
	for b.Await(w.waiter, keys) {
		switch w.pause(ctx, w.waiter.Granted, watch.ForBound) {
		case 1:
			need := b.Forsake(w.waiter)
			behind, peer := b.Behind(need)
			return w.failAt(peer, what, keys, fmt.Errorf("waiting for updates before %v: %s: %w", need, behind, w.g.Host.Late(ctx, context.Cause(ctx))))
		case 2:
			return w.fail(what, keys, w.g.Host.Err())
		}
	}
	return nil
}
