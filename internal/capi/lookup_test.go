package capi

import (
	"slices"
	"testing"
	"time"
)

func TestRowsAreCopiedToThePlacesWhereTheyOccur(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		c := open(t, Config{Nodes: nodes, Tables: []Table{{Name: "t", Rows: 1000, Dim: 3, Rule: "ratedsgd", Init: Init{Kind: "normal", B: 1}}}})
		w := worker(t, c, 0)
		keys := make([]int64, 900) // more distinct ones than a part has
		for i := range keys {
			keys[i] = int64(i * i % 701)
		}
		rows, where := make([]int64, len(keys)), make([]int64, len(keys))
		wantRows, wantWhere := slices.Clone(rows), slices.Clone(where)
		n, err := Unique(keys, wantRows, wantWhere)
		must(t, err)
		got, want := make([]float32, 3*len(keys)), make([]float32, 3*len(keys))
		done(t, w)(w.Pull(0, keys, want, 0, 0))
		check := func() {
			t.Helper()
			m, op, err := w.Lookup(0, keys, rows, where, got, 0)
			done(t, w)(op, err)
			if m != n || !slices.Equal(rows[:m], wantRows[:n]) || !slices.Equal(where, wantWhere) {
				t.Errorf("%d nodes: %d distinct rows are looked up, want %d", nodes, m, n)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d nodes: a lookup differs from a pull", nodes)
			}
		}
		check()
		for name, f := range map[string]func() (int, uint64, error){
			"too few floats":    func() (int, uint64, error) { return w.Lookup(0, keys[:2], rows, where, got[:3], 0) },
			"no room for rows":  func() (int, uint64, error) { return w.Lookup(0, keys[:2], rows[:1], where, got[:6], 0) },
			"no room for where": func() (int, uint64, error) { return w.Lookup(0, keys[:2], rows, where[:1], got[:6], 0) },
			"no such row":       func() (int, uint64, error) { return w.Lookup(0, []int64{1000}, rows, where, got[:3], 0) },
			"no such table":     func() (int, uint64, error) { return w.Lookup(1, keys[:1], rows, where, got[:3], 0) },
		} {
			if _, _, err := f(); err == nil {
				t.Errorf("%d nodes: %s is no error", nodes, name)
			}
		}
		clear(got)
		check() // the worker is free after each error
	}
}

func call(_ uint64, err error) error { return err }

func TestVectorsOfEqualRowsAreAdded(t *testing.T) {
	where := []int64{0, 1, 0, 2, 1, 0}
	for _, c := range []struct {
		name           string
		vals           []float32
		repeat, stride int
		want           []float32
	}{
		{"a vector a place", []float32{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}, 1, 2, []float32{10, 100, 7, 70, 4, 40}},
		{"one vector for all", []float32{1, 10}, 1, 0, []float32{3, 30, 2, 20, 1, 10}},
		{"a vector for three places", []float32{1, 10, 2, 20}, 3, 2, []float32{4, 40, 3, 30, 2, 20}},
	} {
		got := make([]float32, 6)
		if err := Add(where, c.vals, c.repeat, c.stride, 2, got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
		if err := Add(where, c.vals[:len(c.vals)-1], c.repeat, c.stride, 2, got); err == nil {
			t.Errorf("%s: one float too few is no error", c.name)
		}
	}
	for _, bad := range [][3]int{{0, 2, 2}, {1, -1, 2}, {1, 2, 0}, {1, 2, 4}, {1, 1 << 62, 2}} {
		if err := Add(where, make([]float32, 12), bad[0], bad[1], bad[2], make([]float32, 6)); err == nil {
			t.Errorf("repeat, stride and floats %v are no error", bad)
		}
	}
	if err := Add(nil, nil, 1, 2, 2, nil); err != nil {
		t.Errorf("nothing to add: %v", err)
	}
	for name, bad := range map[string][]int64{"a place of no row": {0, 1, 2, 3}, "a negative place": {0, -1}, "a row without place": {0, 1}, "another order": {1, 0, 2}, "no place": {}} {
		if err := Add(bad, make([]float32, 8), 1, 2, 2, make([]float32, 6)); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestPushesAreScaledBeforeTheRule(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		c := open(t, Config{Nodes: nodes, Tables: []Table{{Name: "t", Rows: 1000, Dim: 2}}})
		w := worker(t, c, 0)
		rows, vals := make([]int64, 300), make([]float32, 600)
		for i := range rows {
			rows[i], vals[2*i], vals[2*i+1] = int64(i), float32(i), 4
		}
		done(t, w)(w.Push(0, rows, vals, 0, 0.25, 0, 0))
		got := make([]float32, 600)
		done(t, w)(w.Pull(0, rows, got, 0, time.Second))
		for i, x := range vals {
			if got[i] != x/4 {
				t.Fatalf("%d nodes: float %d is %v, want %v", nodes, i, got[i], x/4)
			}
		}
	}
}
