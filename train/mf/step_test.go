package mf

import (
	"math"
	"testing"

	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/train"
)

// A twin is the slow obvious model: Koren's updates as they are written, in
// float64, cell after cell.
type twin struct {
	c    Config
	mean float64
	p, q [][]float64
}

func newTwin(t *testing.T, task *Task, rows, cols [][]float32) *twin {
	wide := func(x [][]float32) (y [][]float64) {
		for _, r := range x {
			var z []float64
			for _, v := range r {
				z = append(z, float64(v))
			}
			y = append(y, z)
		}
		return y
	}
	return &twin{task.cfg, float64(task.mean), wide(rows), wide(cols)}
}

func (m *twin) predict(r ratings.Rating) float64 {
	p, q := m.p[r.Row], m.q[r.Col]
	x := 0.0
	for i := range m.c.Dim {
		x += p[i] * q[i]
	}
	if m.c.Biased {
		x += m.mean + p[m.c.Dim] + q[m.c.Dim]
	}
	return x
}

func (m *twin) train(r ratings.Rating) {
	p, q := m.p[r.Row], m.q[r.Col]
	e := float64(r.Value) - m.predict(r)
	lr, l2 := float64(m.c.LR), float64(m.c.L2)
	for i := range m.c.Dim {
		x, y := p[i], q[i]
		p[i] += lr * (e*y - l2*x)
		q[i] += lr * (e*x - l2*y)
	}
	if d := m.c.Dim; m.c.Biased {
		p[d] += lr * (e - l2*p[d])
		q[d] += lr * (e - l2*q[d])
	}
}

func (m *twin) compare(t *testing.T, what string, rows, cols [][]float32) {
	t.Helper()
	for side, x := range [][][]float32{rows, cols} {
		for i, r := range x {
			for j, got := range r {
				want := [][][]float64{m.p, m.q}[side][i][j]
				if math.Abs(float64(got)-want) > 1e-4*max(1, math.Abs(want)) {
					t.Fatalf("%s: side %d, row %d, float %d is %v, cell after cell gives %v", what, side, i, j, got, want)
				}
			}
		}
	}
}

func TestSGDIsKorensUpdatesWhateverTheBatch(t *testing.T) {
	set := randomSet(25, 15, 200, 4)
	for _, order := range Orders() {
		for _, biased := range []bool{false, true} {
			for _, batch := range []int{1, 7, 1000} {
				c := small(order)
				c.Batch, c.Biased, c.BoldDriver, c.LR = batch, biased, false, 0.05
				task, s := setup(t, c, set, 1, 1)
				w := s.Workers(0)[0]
				slow := newTwin(t, task, nil, nil)
				rows, cols := values(t, task, w)
				*slow = *newTwin(t, task, rows, cols)
				k, err := task.keys(w.Model())
				if err != nil {
					t.Fatal(err)
				}
				for epoch := range 2 {
					for _, v := range visits(t, task, k, epoch+1, 1) {
						slow.train(v.Rating)
					}
				}
				run(t, task, s, 1, train.Options{Epochs: 2})
				rows, cols = values(t, task, w)
				slow.compare(t, order, rows, cols)
			}
		}
	}
}

// TestBlocksAreASerialRun: workers of several nodes, at once, do what one does
// that takes the blocks of all, part after part of the epoch.
func TestBlocksAreASerialRun(t *testing.T) {
	const nodes, perNode, epochs = 2, 3, 3
	set := randomSet(40, 30, 900, 5)
	c := small(Blocks)
	c.BoldDriver, c.LR = false, 0.05
	var bits [2][]uint32
	for again := range bits {
		task, s := setup(t, c, set, nodes, perNode)
		w := s.Workers(0)[0]
		rows, cols := values(t, task, w)
		slow := newTwin(t, task, rows, cols)
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		for epoch := range epochs {
			all := visits(t, task, k, epoch+1, nodes*perNode)
			for stage := range nodes * perNode {
				for _, v := range all {
					if v.stage == stage {
						slow.train(v.Rating)
					}
				}
			}
		}
		run(t, task, s, nodes, train.Options{Epochs: epochs})
		rows, cols = values(t, task, w)
		slow.compare(t, "blocks", rows, cols)
		for _, r := range append(rows, cols...) {
			for _, x := range r {
				bits[again] = append(bits[again], math.Float32bits(x))
			}
		}
	}
	for i := range bits[0] {
		if bits[0][i] != bits[1][i] {
			t.Fatalf("float %d differs between two runs of blocks", i)
		}
	}
}

func TestTheGradientAgreesWithFiniteDifferences(t *testing.T) {
	for _, biased := range []bool{false, true} {
		c := small(Plain)
		c.Rule, c.BoldDriver, c.Biased, c.Batch, c.L2 = "adagrad", false, biased, 40, 0.3
		task, s := setup(t, c, randomSet(10, 8, 60, 6), 1, 1)
		w := s.Workers(0)[0]
		tr, err := task.Trainer(w, train.Partition{Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		x := tr.(*trainer)
		var b train.Batch[Batch]
		x.Load(&b, train.At{Epoch: 1})
		if _, err := x.Step(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		got := append([]float32(nil), x.push...)
		const h = 1e-2
		loss := func() float64 { return x.penalty(&b.Data) + x.gradient(&b.Data) }
		for i, v := range x.vals {
			x.vals[i] = v + h
			up := loss()
			x.vals[i] = v - h
			down := loss()
			x.vals[i] = v
			// The loss is a square, and rounding to float32 is of its size / h.
			if want := (up - down) / (2 * h) / 2; math.Abs(want-float64(got[i])) > 2e-3*max(1, math.Abs(want)) {
				t.Fatalf("biased %v: half the gradient %d of %d is %v, the difference quotient %v", biased, i, len(x.vals), got[i], want)
			}
		}
	}
}

func TestTheLossIsThatOfTheCellsAndTheirPenalties(t *testing.T) {
	for _, rule := range []string{SGD, "adagrad"} {
		c := small(Plain)
		c.Rule, c.BoldDriver, c.Batch, c.LR = rule, false, 1, 1e-20 // nothing moves
		set := randomSet(10, 8, 60, 6)
		task, s := setup(t, c, set, 1, 1)
		rows, cols := values(t, task, s.Workers(0)[0])
		slow := newTwin(t, task, rows, cols)
		want := 0.0
		for _, r := range set.Train {
			e := float64(r.Value) - slow.predict(r)
			want += e * e
			for _, side := range [][]float64{slow.p[r.Row], slow.q[r.Col]} {
				for _, x := range side {
					want += float64(c.L2) * x * x
				}
			}
		}
		got := run(t, task, s, 1, train.Options{Epochs: 1}).Losses[0]
		if math.Abs(got.Sum-want) > 1e-4*want || got.Examples != int64(len(set.Train)) {
			t.Errorf("%s: the loss is %+v, want %v over %d", rule, got, want, len(set.Train))
		}
	}
}

func TestTheBoldDriverFollowsTheLoss(t *testing.T) {
	c := small(Plain)
	task, s := setup(t, c, randomSet(10, 8, 60, 6), 1, 1)
	tr, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	x, want := tr.(*trainer), float64(c.LR)
	for i, step := range []struct{ loss, by float64 }{{5, 1}, {4, 1.05}, {3, 1.05}, {3.5, 0.5}, {3.4, 1.05}, {3.4, 0.5}} {
		want *= step.by
		x.Adjust(train.Loss{Sum: 10 * step.loss, Examples: 10})
		if math.Abs(float64(x.lr)-want) > 1e-6*want {
			t.Errorf("after loss %d the learning rate is %v, want %v", i, x.lr, want)
		}
	}
	c.BoldDriver = false
	task, s = setup(t, c, randomSet(10, 8, 60, 6), 1, 1)
	if tr, err = task.Trainer(s.Workers(0)[0], train.Partition{Count: 1}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []float64{3, 2, 4} {
		if tr.(*trainer).Adjust(train.Loss{Sum: l, Examples: 1}); tr.(*trainer).lr != c.LR {
			t.Errorf("without it the learning rate is %v, want %v", tr.(*trainer).lr, c.LR)
		}
	}
}
