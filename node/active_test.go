package node

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/restless"
)

// A lasso is ½‖Xw - y‖² + λ‖w‖₁ with the examples dealt out to workers.
type lasso struct {
	x      [][]float64
	y      []float64
	lambda float64
	step   float64
	margin float64 // how far below λ the gradient of a coordinate is that leaves the active set
}

func newLasso(examples, width int) *lasso {
	r := rand.New(rand.NewPCG(*seed, 28))
	l := &lasso{lambda: 60, margin: 10}
	truth := make([]float64, width)
	for j := range truth[:6] {
		truth[j] = 2 + r.Float64()
	}
	norm := 0.0
	for range examples {
		row, y := make([]float64, width), 0.1*r.NormFloat64()
		for j := range row {
			row[j] = r.NormFloat64()
			y += row[j] * truth[j]
			norm += row[j] * row[j]
		}
		l.x, l.y = append(l.x, row), append(l.y, y)
	}
	l.step = 1 / (5 * norm / float64(width)) // Gaussian rows: the largest eigenvalue is within 5 times the mean
	return l
}

func (l *lasso) residual(i int, w []float64) float64 {
	e := -l.y[i]
	for j, x := range l.x[i] {
		e += x * w[j]
	}
	return e
}

func (l *lasso) objective(w []float64) (f float64) {
	for i := range l.x {
		e := l.residual(i, w)
		f += e * e / 2
	}
	for _, v := range w {
		f += l.lambda * math.Abs(v)
	}
	return f
}

// solve is one of n workers that solve it by proximal gradient: they add up
// gradients at the server. With an active set, gradients of other coordinates
// are not sent, but in every tenth pass; the worker stops when such a pass
// leaves the set as it is.
func (l *lasso) solve(ctx context.Context, w godwit.Worker, me, n int, sets bool) (weights []float64, passes int, err error) {
	width := len(l.x[0])
	keys, push, sums, before := make([]godwit.Key, width), make([]float32, width), make([]float32, width), make([]float32, width)
	weights = make([]float64, width)
	active := make([]bool, width)
	for j := range keys {
		keys[j] = godwit.Key(j)
	}
	last := filter.Active{Is: func(k godwit.Key) bool { return active[k] }}
	for passes = 0; passes < 400; passes++ {
		all := !sets || passes%10 == 0
		g := make([]float64, width)
		for i := me; i < len(l.x); i += n {
			e := l.residual(i, weights)
			for j, x := range l.x[i] {
				g[j] += e * x
			}
		}
		for j := range push {
			push[j] = float32(g[j])
		}
		with := godwit.WithFilters(ctx)
		if !all {
			with = godwit.WithFilters(ctx, last)
		}
		if err := w.Push(with, keys, push); err != nil {
			return nil, 0, err
		}
		for _, step := range []func(context.Context) error{w.WaitSync, w.Barrier, w.WaitSync} {
			if err := step(ctx); err != nil {
				return nil, 0, err
			}
		}
		if err := w.Pull(ctx, keys, sums); err != nil {
			return nil, 0, err
		}
		if err := w.Barrier(ctx); err != nil {
			return nil, 0, err
		}
		changed := false
		for j := range keys {
			d := float64(sums[j] - before[j])
			before[j] = sums[j]
			if !all && !active[j] {
				continue
			}
			v := weights[j] - l.step*d
			v = math.Copysign(max(0, math.Abs(v)-l.step*l.lambda), v)
			is := v != 0 || math.Abs(d) >= l.lambda-l.margin
			changed = changed || is != active[j]
			active[j], weights[j] = is, v
		}
		if sets && all && passes >= 200 && !changed {
			return weights, passes, nil
		}
	}
	return weights, passes, nil
}

func TestConformanceC28AnActiveSetEndsWhereAllCoordinatesEnd(t *testing.T) {
	l := newLasso(120, 60)
	run := func(sets bool) (objective float64, s Stats) {
		c := local(t, 2, Config{Model: filtered1(t, 60), Policy: restless.Policy{}, Seed: *seed, Workers: 1})
		results := make([]float64, 2)
		each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
			me := int(w.ID().Node)
			weights, passes, err := l.solve(ctx, w, me, 2, sets)
			if err != nil {
				return err
			}
			if sets && passes%10 != 0 {
				t.Errorf("worker %d stopped after pass %d, which did not look at all coordinates", me, passes)
			}
			results[me] = l.objective(weights)
			return nil
		})
		for _, n := range c.Nodes {
			s.Add(n.Stats())
		}
		if results[0] != results[1] {
			t.Errorf("-seed %d: the workers end at %v and %v", *seed, results[0], results[1])
		}
		return results[0], s
	}
	all, _ := run(false)
	set, s := run(true)
	if math.Abs(set/all-1) > 1e-4 || set >= 0.75*l.objective(make([]float64, 60)) { // 0.24 to 0.53 of it, on 300 data sets
		t.Errorf("-seed %d: with an active set the objective ends at %v, without at %v", *seed, set, all)
	}
	if s.HeldBack < s.Remote/4 {
		t.Errorf("-seed %d: %d gradients were not sent of %d accesses: the test is vacuous", *seed, s.HeldBack, s.Remote)
	}
}

func filtered1(t testing.TB, rows uint64) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "gradient", Rows: rows, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
