package frozen

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// A frozen model has the rows that it is given, its initializers' where there are none, and is not written to.
func TestAFrozenModelIsReadAndNotWritten(t *testing.T) {
	tables := []godwit.Table{{Name: "a", Rows: 3, Dim: 2}, {Name: "b", Rows: 2, Dim: 1}}
	ws, err := Workers(2, tables, []train.Rows{func(row uint64, dst []float32) bool {
		copy(dst, []float32{float32(row), 10})
		return row != 1
	}, nil}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := ws[1]
	keys, dst := []godwit.Key{2, 4, 1}, []float32{9, 9, 9, 9, 9}
	if err := w.Pull(t.Context(), keys, dst); err != nil || !slices.Equal(dst, []float32{2, 10, 0, 0, 0}) {
		t.Errorf("%v is read, %v", dst, err)
	}
	for _, n := range []int{4, 6} {
		if err := w.Pull(t.Context(), keys, make([]float32, n)); !errors.Is(err, godwit.ErrLength) {
			t.Errorf("room for %d floats of 5: %v", n, err)
		}
	}
	if err := w.Pull(t.Context(), []godwit.Key{5}, make([]float32, 1)); err == nil {
		t.Error("a key is read that is not there")
	}
	if err := w.Push(t.Context(), keys, dst); err == nil {
		t.Error("a frozen model is pushed to")
	}
	if _, err := Workers(1, tables, nil, 1); err == nil {
		t.Error("a model of two tables has rows of none")
	}
}

// Calls are as of any worker: they say what was wrong with which keys, and leave nothing under way.
func TestAFrozenWorkerIsAWorker(t *testing.T) {
	tables := []godwit.Table{{Name: "a", Rows: 4, Dim: 1}}
	ws, err := Workers(1, tables, []train.Rows{func(row uint64, dst []float32) bool {
		dst[0] = float32(row)
		return true
	}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, ctx, x := ws[0], t.Context(), make([]float32, 1)
	if !w.PullIfLocal(3, x) || x[0] != 3 || w.PullIfLocal(4, x) {
		t.Errorf("key 3 reads %v, or key 4 reads something", x)
	}
	for what, pull := range map[string]func(k godwit.Key) (godwit.Handle, error){
		"PullAsync": func(k godwit.Key) (godwit.Handle, error) { return w.PullAsync(ctx, []godwit.Key{k}, x) },
		"PullAfter": func(k godwit.Key) (godwit.Handle, error) { return w.PullAfter(ctx, 1, []godwit.Key{k}, x) },
	} {
		if h, err := pull(2); h != 0 || err != nil || x[0] != 2 {
			t.Errorf("%s: %v, %v, %v", what, x, h, err)
		}
		var e *godwit.OpError
		if _, err := pull(9); !errors.As(err, &e) || e.First != 9 || e.Last != 9 || e.Keys != 1 {
			t.Errorf("%s of a key that is not there: %v", what, err)
		}
	}
	for what, write := range map[string]func() (godwit.Handle, error){
		"Push":          func() (godwit.Handle, error) { return 0, w.Push(ctx, []godwit.Key{1, 2}, nil) },
		"Set":           func() (godwit.Handle, error) { return 0, w.Set(ctx, []godwit.Key{1, 2}, nil) },
		"PushAsync":     func() (godwit.Handle, error) { return w.PushAsync(ctx, []godwit.Key{1, 2}, nil) },
		"SetAsync":      func() (godwit.Handle, error) { return w.SetAsync(ctx, []godwit.Key{1, 2}, nil) },
		"PrepareSample": func() (godwit.Handle, error) { _, err := w.PrepareSample(0, 1, 0, 1); return 0, err },
		"PullSample":    func() (godwit.Handle, error) { return 0, w.PullSample(ctx, 0, []godwit.Key{1, 2}, nil) },
	} {
		var e *godwit.OpError
		h, err := write()
		if h != 0 || !errors.Is(err, errFrozen) || !errors.As(err, &e) {
			t.Errorf("%s: %v, %v", what, h, err)
		} else if e.Keys == 2 && (e.First != 1 || e.Last != 2) {
			t.Errorf("%s: of keys %d to %d", what, e.First, e.Last)
		}
	}
	over, cancel := context.WithCancelCause(ctx)
	why := errors.New("enough")
	cancel(why)
	if err := w.Pull(over, []godwit.Key{0}, x); !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v", err)
	}
	var seen []godwit.Key
	for k, err := range w.Scan(ctx, 1, 4, godwit.NoNode) {
		if seen = append(seen, k); err != nil || len(seen) == 4 {
			t.Fatalf("%v, %v", seen, err)
		}
	}
	for k := range w.Scan(ctx, 0, 4, godwit.NoNode) {
		if seen = append(seen, k); k == 1 {
			break
		}
	}
	if !slices.Equal(seen, []godwit.Key{1, 2, 3, 0, 1}) {
		t.Errorf("scans yield %v", seen)
	}
}
