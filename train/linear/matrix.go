package linear

import (
	"context"
	"math"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A matrix is what a worker needs where all weights are one block: its examples, by
// example, and room for the sums over them. See [Blocks].
type matrix struct {
	starts []int // example e has the values starts[e] … starts[e+1]-1
	places []int32
	vals   []float32

	margins, slopes []float32 // by example
	gradient        []float64 // by place
	curvature       []float64 // the rows of places, of which the columns up to the diagonal are used

	// Of the worker that changes the weights:
	full   []float64 // both halves of the sum of the matrices
	weight []float64
	slope  []float64 // of the parabola where weight is
	active []int32
}

func newMatrix(m *model, set *libsvm.Set, part train.Partition) *matrix {
	place := m.placing()
	x := &matrix{starts: []int{0}}
	for i := part.Index; i < set.Len(); i += part.Count {
		_, fs, xs := set.Row(i)
		for _, f := range fs {
			x.places = append(x.places, place.of(f))
		}
		x.vals = append(x.vals, xs...)
		if m.bias {
			x.places, x.vals = append(x.places, int32(m.places()-1)), append(x.vals, 1)
		}
		x.starts = append(x.starts, len(x.places))
	}
	n := m.places()
	x.gradient, x.curvature = make([]float64, n), make([]float64, n*n)
	x.margins, x.slopes = make([]float32, len(x.starts)-1), make([]float32, len(x.starts)-1)
	return x
}

// sum computes the gradient and the curvatures at margins.
func (x *matrix) sum(margins []float64, labels []bool) {
	clear(x.gradient)
	clear(x.curvature)
	// The slope of an example's loss is -1/(1+e^m) for y=1, and 1/(1+e^-m) for the other label.
	for e, m := range margins {
		if labels[e] {
			m = -m
		}
		x.margins[e] = float32(m)
	}
	vec.Sigmoid(x.slopes, x.margins)
	n := len(x.gradient)
	for e, p := range x.slopes {
		from, to := x.starts[e], x.starts[e+1]
		places, vals := x.places[from:to], x.vals[from:to]
		h := touching(float64(x.margins[e]), float64(p))
		g := float64(p)
		if labels[e] {
			g = -g
		}
		for i, at := range places {
			v := float64(vals[i])
			x.gradient[at] += g * v
			v *= h
			row := x.curvature[int(at)*n:][:n]
			for j, q := range places[:i+1] {
				row[q] += v * float64(vals[j])
			}
		}
	}
}

// touching is [parabola] where the probability p = 1/(1+e^-m) is known: tanh(m/2) is 2p-1.
func touching(m, p float64) float64 {
	if math.Abs(m) < 1e-2 { // p has 24 bits
		return 0.25 - m*m/48
	}
	return (p - 0.5) / m
}

// pushMatrix leaves the keys and rows of the block to be pushed.
func (t *blockTrainer) pushMatrix() {
	t.m.sum(t.margin, t.cols.labels)
	n := t.task.places()
	for p, g := range t.m.gradient {
		if !t.has(p) {
			continue
		}
		row := t.m.curvature[p*n : (p+1)*n]
		t.ks = append(t.ks, t.gradientKey(int32(p)))
		t.grads = append(t.grads, float32(g), float32(row[p]), 1)
		for _, h := range row {
			t.grads = append(t.grads, float32(h))
		}
	}
}

// updateWhole takes all weights to their minimum once the rows of all are complete, and clears
// these for the next pass.
func (t *blockTrainer) updateWhole(ctx context.Context, r *read) error {
	if len(r.places) == 0 { // another worker changes them
		return nil
	}
	dim := t.task.gradientDim()
	for i, p := range r.places {
		if r.vals[dim*i+2] != float32(t.sharers[p]) {
			return nil
		}
	}
	for i := range t.own {
		t.own[i].before, t.own[i].pass = t.own[i].value, t.pass
	}
	t.m.minimize(&t.task.cfg, t.own, len(t.task.used), r.vals)
	t.done = append(t.done[:0], r.places...)
	r.places, r.ks = r.places[:0], r.ks[:0]
	return t.publish(ctx, t.done)
}

const (
	// sweeps bounds the sweeps over the weights, and settled is the change of the slope, as a share
	// of the largest one at first, below which they end.
	sweeps  = 500
	settled = 1e-5
)

// minimize takes weights to the minimum of the penalty and the parabola that the rows of gradients describe,
// by coordinate descent: over all weights, then over those that changed until they settle, then over
// all again. The weights from used on have no penalty.
func (x *matrix) minimize(cfg *BlockConfig, own []weight, used int, rows []float32) {
	n := len(own)
	dim := gradientDim + n
	x.full = buffer.Sized(x.full, n*n)
	x.weight, x.slope = buffer.Sized(x.weight, n), buffer.Sized(x.slope, n)
	for p := range n {
		row := rows[dim*p : dim*(p+1)]
		x.slope[p], x.weight[p] = float64(row[0]), float64(own[p].x)
		for q, h := range row[gradientDim : gradientDim+p+1] {
			v := float64(h) / stretch
			x.full[p*n+q], x.full[q*n+p] = v, v
		}
	}
	// step takes a weight to its minimum, and returns by how much that changes its slope.
	step := func(p int) float64 {
		u, l1, l2 := x.full[p*n+p], float64(cfg.L1), float64(cfg.L2)
		if p >= used {
			l1, l2 = 0, 0
		}
		if u+l2 <= 0 {
			return 0
		}
		was, to := x.weight[p], 0.0
		z := u*was - x.slope[p]
		if over := math.Abs(z) - l1; over > 0 {
			to = math.Copysign(over, z) / (u + l2)
		}
		d := to - was
		if d == 0 {
			return 0
		}
		x.weight[p] = to
		slope := x.slope
		for q, h := range x.full[p*n : (p+1)*n] {
			slope[q] += h * d
		}
		return math.Abs(d) * (u + l2)
	}
	largest := 0.0
	for i := 0; i < sweeps; {
		x.active = x.active[:0]
		most := 0.0
		for p := range n {
			if by := step(p); by > 0 {
				x.active = append(x.active, int32(p))
				most = max(most, by)
			}
		}
		i++
		if largest = max(largest, most); most <= settled*largest {
			break
		}
		for ; i < sweeps; i++ {
			most = 0
			for _, p := range x.active {
				most = max(most, step(int(p)))
			}
			if most <= settled*largest {
				break
			}
		}
	}
	for p := range own {
		own[p].x = float32(x.weight[p])
	}
}
