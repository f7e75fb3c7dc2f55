package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
)

// A checkpoint of all processes is read without a cluster, and begun from on another number of nodes.
func TestACheckpointIsReadAndBegunFrom(t *testing.T) {
	const n = 3
	tables := []Table{
		{Name: "t", Rows: 100, Dim: 2, Rule: "ratedadagrad(init=1)", Init: Init{Kind: "normal", A: 0.5, B: 2}},
		{Name: "u", Rows: 10, Dim: 1, Init: Init{Kind: "uniform", A: -0.25, B: 1}},
	}
	place := t.TempDir()
	config := fmt.Appendf(nil, `{"place": %q, "number": 7}`, place)
	var cs [n]*Cluster
	at := "127.0.0.1:0"
	for i := range n {
		b, err := json.Marshal(Config{Nodes: n, Workers: 2, Seed: 5, Tables: tables, Member: &Member{Run: "r", Rank: i, Serve: i == 0, Coordinator: at, Token: "token"}})
		must(t, err)
		cs[i], err = Open(b)
		must(t, err)
		if i == 0 {
			at = cs[0].Address()
		}
	}
	all := make([]int64, 100)
	for i := range all {
		all[i] = int64(i)
	}
	var want []float32
	var wg sync.WaitGroup
	for i, c := range cs {
		_, err := c.Ready(-1)
		must(t, err)
		wg.Go(func() {
			w := worker(t, c, 1)
			done(t, w)(w.Push(0, []int64{int64(i), 50}, []float32{1, 2, 3, 4}, 0.1, 1, 0, 0))
			done(t, worker(t, c, 0))(worker(t, c, 0).Save(config, []byte{byte(i + 1)}, 0))
		})
	}
	wg.Wait()
	want = make([]float32, 400)
	done(t, worker(t, cs[1], 0))(worker(t, cs[1], 0).Read(0, all, want, Values|State, 0))
	for _, c := range cs {
		wg.Go(func() {
			if _, err := c.Close(-1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	r, err := OpenReader(place + "#7")
	must(t, err)
	got := make([]float32, 400)
	must(t, r.Read(0, all, got, Values|State))
	if !slices.Equal(got, want) {
		t.Errorf("the checkpoint has the rows %v, want %v", got, want)
	}
	few := make([]float32, 6)
	must(t, r.Read(0, []int64{99, 50, 99}, few, State))
	if !slices.Equal(few, []float32{1, 1, 28, 49, 1, 1}) {
		t.Errorf("some states are %v", few)
	}
	if kept, err := r.State(); err != nil || !slices.Equal(kept, []byte{1}) {
		t.Errorf("beside the rows there is %v, %v", kept, err)
	}
	if d, err := r.Describe(); err != nil || !strings.Contains(string(d), `"name":"t","rows":100,"dim":2,"state":2`) {
		t.Errorf("%s, %v", d, err)
	}
	for _, nodes := range []int{1, 2} {
		c := open(t, Config{Nodes: nodes, Seed: 9, Tables: tables, From: place})
		w := worker(t, c, 0)
		clear(got)
		done(t, w)(w.Read(0, all, got, Values|State, 0))
		if !slices.Equal(got, want) {
			t.Errorf("%d nodes begin with the rows %v, want %v", nodes, got, want)
		}
		u, v := make([]float32, 10), make([]float32, 10)
		done(t, w)(w.Pull(1, all[:10], u, 0, 0))
		must(t, r.Read(1, all[:10], v, Values))
		if !slices.Equal(u, v) {
			t.Errorf("rows that were not accessed begin as %v, want %v", u, v)
		}
	}
	other := slices.Clone(tables)
	other[1].Rule = "adagrad(lr=0.5)"
	for want, tables := range map[string][]Table{"again after it": tables[:1], "in the same order": other[1:], fmt.Sprintf("table %q was", other[1].Name): other} {
		b, err := json.Marshal(Config{Tables: tables, From: place})
		must(t, err)
		if _, err := Open(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("another model begins from it: %v, want an error with %q", err, want)
		}
	}
}

// A model that no checkpoint can hold is refused before rows are written, by a call that says why.
func TestAModelThatNoCheckpointHoldsIsNotSaved(t *testing.T) {
	tables := make([]Table, 4097)
	for i := range tables {
		tables[i] = Table{Name: fmt.Sprint("t", i), Rows: 1, Dim: 1}
	}
	w, place := worker(t, open(t, Config{Tables: tables}), 0), t.TempDir()
	if _, err := w.Save(fmt.Appendf(nil, `{"place": %q, "number": 1}`, place), nil, 0); CodeOf(err) != Argument || !strings.Contains(err.Error(), "4097 tables, want 1 … 4096") {
		t.Errorf("the model was saved: %v", err)
	}
	if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	done(t, w)(w.Barrier(0)) // the worker is free
}

// Only what changed since the last checkpoint is written, where that is known.
func TestCheckpointsOfWhatChanged(t *testing.T) {
	c := open(t, Config{Nodes: 2, Seed: 5, Tables: []Table{{Name: "t", Rows: 1000, Dim: 2, Rule: "ratedadagrad(init=1)"}}})
	w, place := worker(t, c, 0), t.TempDir()
	all := make([]int64, 1000)
	for i := range all {
		all[i] = int64(i)
	}
	want, got := make([]float32, 4000), make([]float32, 4000)
	save := func(to string, number int) *checkpoint.Manifest {
		t.Helper()
		done(t, w)(w.Save(fmt.Appendf(nil, `{"place": %q, "number": %d, "keep": 1}`, to, number), nil, 0))
		done(t, w)(w.Read(0, all, want, Values|State, 0))
		r, err := OpenReader(to)
		must(t, err)
		must(t, r.Read(0, all, got, Values|State))
		if !slices.Equal(got, want) {
			t.Fatalf("checkpoint %d has other rows than the cluster", number)
		}
		return r.c.Manifest()
	}
	push := func(rows ...int64) {
		done(t, w)(w.Push(0, rows, slices.Repeat([]float32{1}, 2*len(rows)), 0.1, 1, 0, 0))
	}
	push(all...)
	if m := save(place, 1); m.Rows != 1000 || len(m.BuildsOn) != 0 {
		t.Errorf("the first checkpoint has %d rows and builds on %d", m.Rows, len(m.BuildsOn))
	}
	push(3, 700)
	done(t, w)(w.Write(0, []int64{5}, []float32{8, 9}, Values, 0))
	done(t, w)(w.Write(0, []int64{6}, []float32{8, 9}, State, 0))
	done(t, w)(w.Set(0, []int64{7}, []float32{8, 9}, 0))
	if m := save(place, 2); m.Rows != 5 || len(m.BuildsOn) != 1 {
		t.Errorf("after 5 changes a checkpoint has %d rows and builds on %d", m.Rows, len(m.BuildsOn))
	}
	push(9)
	if m := save(t.TempDir(), 1); m.Rows != 1000 {
		t.Errorf("the first checkpoint in another folder has %d rows", m.Rows)
	}
	push(10)
	if m := save(place, 3); m.Rows != 1000 {
		t.Errorf("a checkpoint where others were written elsewhere meanwhile has %d rows", m.Rows)
	}
	must(t, os.RemoveAll(place))
	must(t, os.Mkdir(place, 0o700))
	if m := save(place, 4); m.Rows != 1000 {
		t.Errorf("a checkpoint after all were removed has %d rows", m.Rows)
	}
	push(11)
	if _, err := w.Save([]byte(`{"place": "/dev/null/no folder", "number": 1}`), nil, -1); err == nil {
		t.Error("a checkpoint was written to no folder")
	}
	if m := save(place, 5); m.Rows != 1000 {
		t.Errorf("a checkpoint after one that failed has %d rows", m.Rows)
	}
	other := open(t, Config{Nodes: 1, Seed: 5, Tables: []Table{{Name: "t", Rows: 1000, Dim: 2, Rule: "ratedadagrad(init=1)"}}})
	o := worker(t, other, 0)
	done(t, o)(o.Push(0, []int64{1}, []float32{1, 1}, 0.1, 1, 0, 0))
	done(t, o)(o.Save(fmt.Appendf(nil, `{"place": %q, "number": 6, "keep": 9}`, place), nil, 0))
	push(12)
	if m := save(place, 7); m.Rows != 1000 {
		t.Errorf("a checkpoint behind one of another run has %d rows", m.Rows)
	}
}

// What processes have told each other of a checkpoint that was given up is no part of the next one.
func TestASaveAfterOneThatWasGivenUp(t *testing.T) {
	cs, ws := started(t, served)
	place := t.TempDir()
	for i, c := range cs {
		c.notes <- note{Node: 1 - i, ID: checkpoint.NewID(1), Cut: uint64(1 - i), Err: "cancelled"}
	}
	for number := 1; number < 3; number++ {
		var wg sync.WaitGroup
		for rank, w := range ws {
			wg.Go(func() {
				config := fmt.Appendf(nil, `{"place": %q, "number": %d}`, place, number)
				if err := result(w, func(wait time.Duration) (uint64, error) { return w.Save(config, nil, wait) }); err != nil {
					t.Errorf("save %d, rank %d: %v", number, rank, err)
				}
			})
		}
		wg.Wait()
	}
	// Who gives up tells the others, who wait for the end.
	given, cancel := context.WithCancel(t.Context())
	cancel()
	word, done := lastWord(given)
	defer done()
	must(t, cs[0].tell(word, 1, note{Err: "cancelled"}))
	closeAll(t, cs)
}
