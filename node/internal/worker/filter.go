package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/filtering"
)

// This file is how a worker sends what filters make of its pushes (package
// filtering), and what they left.

// push sends the missed positions of a push, through filters where there are
// some.
func (w *Worker) push(ctx context.Context, what string, keys []godwit.Key, push []float32, c *places) (godwit.Handle, error) {
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
	switch w.pause(ctx, fs.Right()) {
	case 1:
		return w.fail(what, nil, fmt.Errorf("waiting for another call to push what filters left: %w", context.Cause(ctx)))
	case 2:
		return w.fail(what, nil, w.g.Host.Err())
	}
	w.req.token = fs.Right()
	defer func() {
		if w.req.token != nil {
			w.req.token <- struct{}{}
		}
		w.req.token = nil
	}()
	for _, r := range fs.Residuals() {
		if !r.Some() {
			continue
		}
		if err := w.pushKeptOf(ctx, what, r); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many kept vectors are pushed in one operation.
const atOnce = 1 << 12

func (w *Worker) pushKeptOf(ctx context.Context, what string, r *filtering.Residual) error {
	var vals []float32
	for keys := range slices.Chunk(r.Keys(), atOnce) {
		keys, vals = r.Take(keys, vals[:0]) // fewer: the worker may push meanwhile
		w.req.unissued = len(keys)
		h, err := w.all(ctx, what, wire.Push, keys, vals)
		if err == nil {
			w.filters.Pushed(len(keys))
			err = w.wait(ctx, h)
		} else {
			r.Return(w.g.Model, keys, vals, w.req.unissued)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
