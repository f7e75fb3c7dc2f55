package worker

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/ahead"
	"github.com/godwit-ps/godwit/node/internal/watch"
)

// This file is the worker as its fetcher of values sees it (ahead.Asker), and what it takes of
// that.

// takeFetched serves missed keys of a pull by what was fetched ahead.
func (w *Worker) takeFetched(ctx context.Context, keys []godwit.Key, buf []float32, c *watch.Accesses) (err error) {
	var took ahead.Took
	if w.rows.Miss, took, err = w.fetcher.Take(ctx, keys, buf, w.rows.Miss, w.req.waits); err != nil {
		return err
	}
	if took.Late+took.Now > 0 {
		add(&w.count.slow, 1)
	}
	c.Elsewhere(took.Ahead, took.Late, took.Now)
	return nil
}

func (w *Worker) AskAhead(keys []godwit.Key, values []float32, whole bool) (h godwit.Handle, sent bool, err error) {
	w.req.whole = whole
	w.every(keys)
	h, err = w.request(context.Background(), "fetch ahead", wire.Pull, keys, values, nil)
	w.req.whole = false
	return h, w.req.asks.Waits == 0, err
}

func (w *Worker) Arrived(ctx context.Context, h godwit.Handle, keep bool) (over bool, err error) {
	if keep {
		return w.lookAfter(ctx, h)
	}
	return true, w.wait(ctx, h)
}

func (w *Worker) Forsake(h godwit.Handle) {
	if o, _ := w.ops.Get(h); o != nil && !w.abandon(o) {
		<-o.Done // it is complete
		w.ops.End(o)
	}
}
