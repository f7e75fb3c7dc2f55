package capi

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// What a rule keeps of a row is read and written without its value, and the value without it,
// wherever the row is.
func TestPartsOfRowsAreReadAndWrittenByThemselves(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := open(t, Config{Nodes: nodes, Tables: []Table{{Name: "t", Rows: 100, Dim: 2, Rule: "ratedadagrad(init=1)"}, {Name: "plain", Rows: 5, Dim: 1}}})
		w := worker(t, c, nodes-1)
		do := done(t, w)
		rows := []int64{3, 70, 3}
		do(w.Push(0, []int64{3}, []float32{2, 3}, 0, 1, 0, 0))
		dst := make([]float32, 12)
		do(w.Read(0, rows, dst[:6], State, 0))
		if want := []float32{5, 10, 1, 1, 5, 10}; !slices.Equal(dst[:6], want) {
			t.Errorf("%d nodes: the states are %v, want %v", nodes, dst[:6], want)
		}
		do(w.Write(0, []int64{3, 70}, []float32{8, 9, 24, 24}, State, 0))
		do(w.Write(0, []int64{70}, []float32{10, 20}, Values, 0))
		do(w.Read(0, rows, dst, Values|State, 0))
		if want := []float32{0, 0, 8, 9, 10, 20, 24, 24, 0, 0, 8, 9}; !slices.Equal(dst, want) {
			t.Errorf("%d nodes: the rows are %v, want %v", nodes, dst, want)
		}
		do(w.Push(0, []int64{70}, []float32{1, 1}, 5, 1, 0, 0))
		do(w.WaitSync(0))
		do(w.Pull(0, []int64{70}, dst[:2], 0, 0))
		if want := []float32{9, 19}; !slices.Equal(dst[:2], want) { // 1·5/√(24+1)
			t.Errorf("%d nodes: the row is %v after a push, want %v", nodes, dst[:2], want)
		}
		do(w.Read(1, []int64{1}, nil, State, 0))
		if n, err := w.StateLen(0); n != 2 || err != nil {
			t.Errorf("a state of %d floats, %v", n, err)
		}
		for _, parts := range []int{0, 4, State} {
			if _, err := w.Read(0, rows, dst, parts, 0); err == nil {
				t.Errorf("%d floats of the parts %d of 3 rows were read", len(dst), parts)
			}
		}
	}
}

// Any bytes may come as a question, and as an answer.
func FuzzQuestionsAboutRows(f *testing.F) {
	c := &Cluster{tables: []table{{rows: 10, dim: 2, state: 3, rated: true}, {rows: 1 << 40, dim: 1, first: 10}}}
	for _, write := range []bool{false, true} {
		x := &need{c: c, parts: Values | State, floats: 5, rows: []int64{1, 9}, vals: make([]float32, 10), write: write}
		f.Add(x.question([]int{0, 1}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, floats, err := c.asked(b); err == nil {
			if x.write && len(floats) != 4*x.floats*len(x.rows) {
				t.Errorf("%d bytes of values for %d rows of %d", len(floats), len(x.rows), x.floats)
			}
			x.vals = make([]float32, x.floats*len(x.rows))
			takeFloats(x.vals[:len(floats)/4], floats)
			some := make([]int, len(x.rows))
			for i := range some {
				some[i] = i
			}
			if got := x.question(some); !slices.Equal(got[headLen:headLen+8*len(some)], b[headLen:headLen+8*len(some)]) {
				t.Error("the rows of the question are others")
			}
		}
		x := &need{c: c, floats: 2, vals: make([]float32, 6)}
		if left, err := x.answered([]int{2, 0, 1}, b); err == nil && len(left) > 3 {
			t.Errorf("%d of 3 rows are left", len(left))
		}
	})
}

// Rows that are looked at are those that pulls make, and none is made.
func TestLooksMakeNoRows(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, rule := range []string{"add", "ratedadagrad(eps=1e-10,init=0.5)", "ftrl(lr=0.1)"} {
			config := Config{Nodes: nodes, Seed: 7, Tables: []Table{{Name: "t", Rows: 1000, Dim: 3, Rule: rule, Init: Init{"uniform", -1, 1}}}}
			c, other := open(t, config), open(t, config)
			w, v := worker(t, c, 0), worker(t, other, 0)
			rows := []int64{3, 999, 500, 3, 0, 17, 3}
			rate := float32(0)
			if w.cluster.tables[0].rated {
				rate = 0.1
			}
			for _, x := range []*Worker{w, v} {
				_, err := x.Push(0, []int64{17, 500}, []float32{1, 1, 1, 2, 2, 2}, rate, 1, 0, -1)
				must(t, err)
			}
			got, want := make([]float32, 3*len(rows)), make([]float32, 3*len(rows))
			for _, flags := range []int{Look, Look | Once} {
				clear(got)
				_, err := w.Pull(0, rows, got, flags, -1)
				must(t, err)
				_, err = v.Pull(0, rows, want, 0, -1)
				must(t, err)
				if !slices.Equal(got, want) {
					t.Errorf("%d nodes, rule %s, flags %d: %v, want %v", nodes, rule, flags, got, want)
				}
			}
			var used []int64
			for k := range int64(1000) {
				for _, n := range c.here {
					if is, known := n.Used(w.cluster.tables[0].first + godwit.Key(k)); is && known {
						used = append(used, k)
						break
					}
				}
			}
			if want := []int64{17, 500}; rule != "ftrl(lr=0.1)" && !slices.Equal(used, want) { // of which pulls are made by the rule
				t.Errorf("%d nodes, rule %s: rows %v exist, want %v", nodes, rule, used, want)
			}
		}
	}
}
