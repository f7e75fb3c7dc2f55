package worker

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is the worker as its fetcher of values sees it (ahead.Asker), and what it takes of
// that.

// takeFetched serves missed keys of a pull by what was fetched ahead.
func (w *Worker) takeFetched(ctx context.Context, keys []godwit.Key, buf []float32, c *places) (err error) {
	var took, late uint64
	if w.rows.Miss, took, late, err = w.fetcher.Take(ctx, keys, buf, w.rows.Miss, w.req.waits); err != nil {
		return err
	}
	if late > 0 {
		add(&w.count.slow, 1)
		add(&c[waited], late)
	}
	add(&c[fetched], took-late)
	return nil
}

func (w *Worker) AskAhead(keys []godwit.Key, values []float32) (godwit.Handle, error) {
	w.every(keys)
	return w.request(context.Background(), "fetch ahead", wire.Pull, keys, values, nil)
}

func (w *Worker) Arrived(ctx context.Context, h godwit.Handle) error { return w.wait(ctx, h) }

func (w *Worker) Forsake(h godwit.Handle) {
	if o, _ := w.ops.Get(h); o != nil && !w.abandon(o) {
		<-o.Done // it is complete
		w.ops.End(o)
	}
}
