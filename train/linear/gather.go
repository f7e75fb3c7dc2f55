package linear

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: examples with their features as
// numbers of the batch's distinct ones.
type Batch struct {
	features int     // distinct ones
	examples []int32 // positions in the set
	local    []int32 // of all examples, one after the other
}

// A gatherer makes batches of a set's examples, and knows how their values lie
// in a buffer: the bias, the weight of each distinct feature, the factor of
// each. It belongs to one goroutine.
type gatherer struct {
	m    *model
	keys keys
	set  *libsvm.Set
	rows distinct.Rows

	sums []float32 // of the factors of an example
}

// gather fills b with examples and returns their keys, appended to ks.
func (g *gatherer) gather(b *Batch, ks []godwit.Key, examples []int32) []godwit.Key {
	b.examples = append(b.examples[:0], examples...)
	b.local = b.local[:0]
	g.rows.Reset()
	for _, e := range examples {
		_, fs, _ := g.set.Row(int(e))
		for _, f := range fs {
			b.local = append(b.local, g.rows.Add(f))
		}
	}
	b.features = g.rows.Len()
	if g.m.bias {
		ks = append(ks, g.keys.bias)
	}
	for _, f := range g.rows.All() {
		ks = append(ks, g.keys.weight+godwit.Key(f))
	}
	if g.m.factors > 0 {
		for _, f := range g.rows.All() {
			ks = append(ks, g.keys.factor+godwit.Key(f))
		}
	}
	return ks
}

// floats is the length of a batch's values.
func (g *gatherer) floats(b *Batch) int { return g.factorsAt(b) + b.features*g.m.factors }

func (g *gatherer) weightsAt() int {
	if g.m.bias {
		return g.m.dim
	}
	return 0
}

func (g *gatherer) factorsAt(b *Batch) int { return g.weightsAt() + b.features*g.m.dim }

// forward computes the margins of the examples of a batch, and calls do with each.
func (g *gatherer) forward(b *Batch, vals []float32, do func(positive bool, margin float32, local []int32, values []float32)) {
	w, v := vals[g.weightsAt():], vals[g.factorsAt(b):]
	bias := float32(0)
	if g.m.bias {
		bias = vals[0]
	}
	local := b.local
	for _, e := range b.examples {
		y, _, xs := g.set.Row(int(e))
		ids := local[:len(xs)]
		local = local[len(xs):]
		m := bias
		for k, id := range ids {
			m += w[int(id)*g.m.dim] * xs[k]
		}
		if g.m.factors > 0 {
			m += g.pairs(v, ids, xs)
		}
		do(y, m, ids, xs)
	}
}

// pairs is Σ_{i<j} ⟨vᵢ, vⱼ⟩·xᵢ·xⱼ in the time of the features (Rendle 2010, lemma
// 3.1): half of |Σ vᵢ·xᵢ|² - Σ |vᵢ·xᵢ|². It leaves Σ vᵢ·xᵢ in sums.
func (g *gatherer) pairs(v []float32, ids []int32, xs []float32) float32 {
	k := g.m.factors
	if len(g.sums) < k {
		g.sums = make([]float32, k)
	}
	clear(g.sums)
	own := float32(0)
	for i, id := range ids {
		f := v[int(id)*k : (int(id)+1)*k]
		vec.AXPY(g.sums, xs[i], f)
		own += xs[i] * xs[i] * vec.SquaredNorm(f)
	}
	return (vec.SquaredNorm(g.sums) - own) / 2
}

// logLoss is log(1 + e^(-y·m)) for y = ±1.
func logLoss(positive bool, margin float32) float64 {
	ym := float64(margin)
	if !positive {
		ym = -ym
	}
	if ym < -30 { // e^(-ym) is all there is to float64's precision
		return -ym
	}
	return math.Log1p(math.Exp(-ym))
}

// slope is the derivative of the loss towards the margin: the probability of the
// positive class, less 1 if it is the right one.
func slope(positive bool, margin float32) float32 {
	if positive {
		return float32(-1 / (1 + math.Exp(float64(margin))))
	}
	return float32(1 / (1 + math.Exp(-float64(margin))))
}
