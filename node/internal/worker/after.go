package worker

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/operation"
)

// PullAfter asks at once for what is not here; who keeps the request until its time has come
// is in package staleness.
func (w *Worker) PullAfter(ctx context.Context, after godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	const what = "pull"
	if err := w.check(what, keys, len(dst)); err != nil {
		return 0, err
	}
	if err := w.g.Host.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	for _, k := range keys {
		if i, _ := w.g.Model.Locate(k); w.g.Model.Table(i).Staleness == godwit.Eventual {
			return 0, w.fail(what, keys, fmt.Errorf("%w: pull after clock %d: table %q must have bounded staleness, be it far", godwit.ErrBound, after, w.g.Model.Table(i).Name))
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	if err := w.inWindow(ctx, what, keys); err != nil {
		return 0, err
	}
	b := w.g.Bound
	at := w.clock.TickAt(after)
	w.samples.Accessed(keys)
	if b.Reaches(at) {
		return w.serve(ctx, what, wire.Pull, keys, dst, &w.count.direct)
	}
	if err := w.ops.Reserve(len(keys)); err != nil {
		return 0, w.fail(what, keys, err)
	}
	w.req.reserved = len(keys)
	w.req.after = at
	defer func() {
		w.ops.Return(w.req.reserved)
		w.req.after, w.req.reserved = 0, 0
	}()
	if err := w.reads(keys); err != nil {
		return 0, err
	}
	add(&w.count.calls, 1)
	w.every(keys)
	for _, k := range keys {
		t, _ := w.g.Model.Locate(k)
		w.count.direct.One(t, protocol.Elsewhere)
	}
	return w.request(ctx, what, wire.Pull, keys, dst, &w.count.direct)
}

// delayed says who holds up an operation that waits for a tick.
func (w *Worker) delayed(o *operation.Op) error {
	behind, _ := w.g.Bound.Behind(o.After)
	return fmt.Errorf("waiting for updates before %v: %s", o.After, behind)
}

// awaited has the bound know that the worker waits for an operation that waits for a tick. It
// refuses what could never end: the worker itself holds that tick up.
func (w *Worker) awaited(o *operation.Op) error {
	if w.clock.Tick().Before(o.After) {
		return w.fail(o.What, nil, fmt.Errorf("%w: it waits for updates before %v, and this worker is at %v: advance first", godwit.ErrBound, o.After, w.clock.Tick()))
	}
	w.g.Bound.Want(o.After)
	return nil
}

// Finish has others not wait for the worker until the next Barrier, and a cut not until its next
// call.
func (w *Worker) Finish() {
	w.enter()
	w.tally.Advanced(w.clock.Now(), true)
	w.party.Finish(w.nextEra())
	w.parked = true // and inside
}

// nextEra returns what has the worker's clock go to the next era; nil: no table bounds staleness.
func (w *Worker) nextEra() func() {
	b := w.g.Bound
	if b == nil {
		return nil
	}
	return func() { b.Enter(w.clock) }
}
