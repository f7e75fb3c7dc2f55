package linear

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
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

	margins []float32 // of an example
	sums    []float32 // of its factors
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
func (g *gatherer) floats(b *Batch) int { return g.factorsAt(b) + b.features*g.m.factorDim() }

func (g *gatherer) weightsAt() int {
	if g.m.bias {
		return g.m.dim
	}
	return 0
}

func (g *gatherer) factorsAt(b *Batch) int { return g.weightsAt() + b.features*g.m.dim }

// forward computes the margins of the examples of a batch, and calls do with each, which
// may change margins.
func (g *gatherer) forward(b *Batch, vals []float32, do func(label float32, margins []float32, local []int32, values []float32)) {
	w, v := vals[g.weightsAt():], vals[g.factorsAt(b):]
	n := g.m.outputs()
	g.margins = buffer.Sized(g.margins, n)
	local := b.local
	for _, e := range b.examples {
		y, _, xs := g.set.Row(int(e))
		ids := local[:len(xs)]
		local = local[len(xs):]
		clear(g.margins)
		if g.m.bias {
			copy(g.margins, vals)
		}
		if n == 1 {
			for k, id := range ids {
				g.margins[0] += w[int(id)*g.m.dim] * xs[k]
			}
		} else {
			for k, id := range ids {
				vec.AXPY(g.margins, xs[k], w[int(id)*n:(int(id)+1)*n])
			}
		}
		if g.m.factors > 0 {
			g.pairs(v, ids, xs)
		}
		do(y, g.margins, ids, xs)
	}
}

// pairs adds Σ_{i<j} ⟨vᵢ, vⱼ⟩·xᵢ·xⱼ to each margin, in the time of the features (Rendle 2010, lemma
// 3.1): half of |Σ vᵢ·xᵢ|² - Σ |vᵢ·xᵢ|². It leaves Σ vᵢ·xᵢ in sums, of an output after the other.
func (g *gatherer) pairs(v []float32, ids []int32, xs []float32) {
	k, row := g.m.factors, g.m.factorDim()
	g.sums = buffer.Sized(g.sums, row)
	clear(g.sums)
	for at := 0; at < row; at += k {
		sums, own := g.sums[at:at+k], float32(0)
		for i, id := range ids {
			f := v[int(id)*row+at:][:k]
			vec.AXPY(sums, xs[i], f)
			own += xs[i] * xs[i] * vec.SquaredNorm(f)
		}
		g.margins[at/k] += (vec.SquaredNorm(sums) - own) / 2
	}
}
