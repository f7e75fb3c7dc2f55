package worker

import (
	"context"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/watch"
)

// This file is how a worker sends what filters make of its pushes (package
// filtering), and what they left.

// push sends the missed positions of a push, through filters where there are
// some.
func (w *Worker) push(ctx context.Context, what string, keys []godwit.Key, push []float32, c *watch.Accesses) (godwit.Handle, error) {
	w.rows.Miss, w.req.forms, push = w.filters.Filter(ctx, &w.out, w.rows.Miss, keys, push)
	var h godwit.Handle
	var err error
	if w.req.unissued = len(w.rows.Miss) / 2; w.req.unissued > 0 {
		h, err = w.request(ctx, what, wire.Push, keys, push, c)
	}
	if err == nil {
		w.req.unissued = 0
	}
	w.filters.Keep(w.rows.Miss, w.req.unissued)
	return h, err
}

// pushKept pushes what all workers of the node keep, as it is, and waits: also
// for what another call has taken to push it, and nobody keeps any more. A call that
// gives up leaves the right to flush to what it has under way, so that the next one
// waits for that.
func (w *Worker) pushKept(ctx context.Context, what string) error {
	fs := w.g.Filters
	if !fs.Kept() {
		return nil
	}
	if err := w.right(ctx, what); err != nil {
		return err
	}
	w.req.token = fs.Right()
	defer func() {
		if w.req.token != nil {
			w.req.token <- struct{}{}
		}
		w.req.token = nil
	}()
	for _, r := range fs.Residuals() {
		if err := w.pushAsideOf(ctx, what, r); err != nil {
			return err
		}
		if !r.Some() {
			continue
		}
		if err := w.pushKeptOf(ctx, what, r); err != nil {
			return err
		}
	}
	return nil
}

// right waits until this worker alone pushes what is kept.
func (w *Worker) right(ctx context.Context, what string) error {
	return w.until(ctx, what, nil, w.g.Filters.Right(), watch.ForOthers, reason("waiting for another call to push what filters left: "))
}

// atOnce is how many kept vectors are pushed in one operation.
const atOnce = 1 << 12

func (w *Worker) pushKeptOf(ctx context.Context, what string, r *filtering.Residual) error {
	var vals []float32
	var odd bool
	for keys := range slices.Chunk(r.Keys(), atOnce) {
		keys, vals, odd = r.Take(keys, vals[:0]) // fewer: the worker may push meanwhile
		if err := w.pushLeft(ctx, what, r, keys, vals, odd); err != nil {
			return err
		}
	}
	return nil
}

// pushAsideOf pushes what was set aside when a worker crossed into a cut.
func (w *Worker) pushAsideOf(ctx context.Context, what string, r *filtering.Residual) error {
	for {
		keys, vals, odd := r.TakeAside(atOnce)
		if len(keys) == 0 {
			return nil
		}
		if err := w.pushLeft(ctx, what, r, keys, vals, odd); err != nil {
			return err
		}
	}
}

// pushLeft pushes vectors that filters left of pushes from one side of cuts, and waits.
func (w *Worker) pushLeft(ctx context.Context, what string, r *filtering.Residual, keys []godwit.Key, vals []float32, odd bool) error {
	w.req.unissued = len(keys)
	own := w.rows.Mark
	w.rows.Mark = protocol.MarkOf(odd)
	h, err := w.all(ctx, what, wire.Push, keys, vals)
	w.rows.Mark = own
	if err != nil {
		r.Return(w.g.Model, keys, vals, odd, w.req.unissued)
		return err
	}
	w.filters.Pushed(len(keys))
	return w.wait(ctx, h)
}
