package capi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
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
			done(t, w)(w.Push(0, []int64{int64(i), 50}, []float32{1, 2, 3, 4}, 0.1, 0, 0))
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
	b, err := json.Marshal(Config{Tables: tables[:1], From: place})
	must(t, err)
	if _, err := Open(b); err == nil || !strings.Contains(err.Error(), "tables") {
		t.Errorf("another model begins from it: %v", err)
	}
}
