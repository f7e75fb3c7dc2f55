// Package frozen has workers of a model that does not change, such as an exported one,
// so that evaluations and predictions of such models are those of models in training.
package frozen

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// A Worker reads a model whose rows come from functions. What they do not have, the
// tables' initializers make. It cannot write. It implements [godwit.Worker].
type Worker struct {
	id    godwit.WorkerID
	model *godwit.Model
	rows  []train.Rows
	seed  uint64
}

var _ godwit.Worker = (*Worker)(nil)

// Workers returns n workers of a model with these tables, each of which has its rows at
// the same place. The seed is that of the run, for initializers.
func Workers(n int, tables []godwit.Table, rows []train.Rows, seed uint64) ([]godwit.Worker, error) {
	m, err := godwit.NewModel(tables...)
	if err != nil {
		return nil, err
	}
	if len(rows) != len(tables) {
		return nil, fmt.Errorf("frozen: rows of %d tables, there are %d", len(rows), len(tables))
	}
	ws := make([]godwit.Worker, n)
	for i := range ws {
		ws[i] = &Worker{id: godwit.WorkerID{Local: i}, model: m, rows: rows, seed: seed}
	}
	return ws, nil
}

// errFrozen is the error of what would change the model.
var errFrozen = errors.New("a trained model is only read")

// ID implements [godwit.Worker], as all methods do.
func (w *Worker) ID() godwit.WorkerID { return w.id }

// Model returns the model.
func (w *Worker) Model() *godwit.Model { return w.model }

// Pull reads rows.
func (w *Worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	if err := context.Cause(ctx); err != nil {
		return w.failed("pull", keys, err)
	}
	n, err := w.model.Floats(keys)
	if err == nil && n != len(dst) {
		err = fmt.Errorf("%w: %d floats, the values of the keys have %d", godwit.ErrLength, len(dst), n)
	}
	if err != nil {
		return w.failed("pull", keys, err)
	}
	for _, k := range keys {
		table, row := w.model.Locate(k)
		d := w.model.Table(table).Dim
		w.read(k, table, row, dst[:d])
		dst = dst[d:]
	}
	return nil
}

func (w *Worker) read(k godwit.Key, table int, row uint64, dst []float32) {
	if read := w.rows[table]; read == nil || !read(row, dst) {
		w.model.Table(table).Init.Init(dst, w.seed, k)
	}
}

func (w *Worker) failed(op string, keys []godwit.Key, err error) error {
	e := &godwit.OpError{Op: op, Worker: w.id, Peer: godwit.NoNode, Keys: len(keys), Err: err}
	if len(keys) > 0 {
		e.First, e.Last = keys[0], keys[len(keys)-1]
	}
	return e
}

// PullIfLocal reads a row: all are here.
func (w *Worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	return w.Pull(context.Background(), []godwit.Key{k}, dst) == nil
}

// PullAsync reads rows at once.
func (w *Worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	return 0, w.Pull(ctx, keys, dst)
}

// PullAfter reads rows at once: all updates were made.
func (w *Worker) PullAfter(ctx context.Context, _ godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	return 0, w.Pull(ctx, keys, dst)
}

// Wait has nothing to wait for.
func (w *Worker) Wait(context.Context, ...godwit.Handle) error { return nil }

// Scan yields all keys: each may have a value.
func (w *Worker) Scan(ctx context.Context, first, end godwit.Key, _ godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		for k := first; k < end; k++ {
			if !yield(k, nil) {
				return
			}
		}
	}
}

// Push fails, as all that writes does.
func (w *Worker) Push(_ context.Context, keys []godwit.Key, _ []float32) error {
	return w.failed("push", keys, errFrozen)
}

// Set fails.
func (w *Worker) Set(_ context.Context, keys []godwit.Key, _ []float32) error {
	return w.failed("set", keys, errFrozen)
}

// PushAsync fails.
func (w *Worker) PushAsync(_ context.Context, keys []godwit.Key, _ []float32) (godwit.Handle, error) {
	return 0, w.failed("push", keys, errFrozen)
}

// SetAsync fails.
func (w *Worker) SetAsync(_ context.Context, keys []godwit.Key, _ []float32) (godwit.Handle, error) {
	return 0, w.failed("set", keys, errFrozen)
}

// PrepareSample fails: negatives are for training.
func (w *Worker) PrepareSample(int, int, godwit.Clock, godwit.Clock) (godwit.SampleID, error) {
	return 0, w.failed("prepare sample", nil, errFrozen)
}

// PullSample fails.
func (w *Worker) PullSample(_ context.Context, _ godwit.SampleID, keys []godwit.Key, _ []float32) error {
	return w.failed("pull sample", keys, errFrozen)
}

// The others do nothing: no row moves, and nobody else works on the model.

func (w *Worker) Localize(context.Context, []godwit.Key) error { return nil }
func (w *Worker) LocalizeAsync(context.Context, []godwit.Key) (godwit.Handle, error) {
	return 0, nil
}
func (w *Worker) Intent([]godwit.Key, godwit.Clock, godwit.Clock) error { return nil }
func (w *Worker) Lookahead() godwit.Clock                               { return 0 }
func (w *Worker) BoundAge(godwit.Clock)                                 {}
func (w *Worker) Advance() godwit.Clock                                 { return 0 }
func (w *Worker) Clock() godwit.Clock                                   { return 0 }
func (w *Worker) Finish()                                               {}
func (w *Worker) FinishSample(godwit.SampleID)                          {}
func (w *Worker) WaitSync(context.Context) error                        { return nil }
func (w *Worker) SyncAll(context.Context) error                         { return nil }
func (w *Worker) Barrier(context.Context) error                         { return nil }
