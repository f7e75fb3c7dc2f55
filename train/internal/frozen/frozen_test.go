package frozen

import (
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
