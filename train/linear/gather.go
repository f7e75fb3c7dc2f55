package linear

import (
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: a copy of examples, with their features as
// numbers of the batch's distinct ones. Examples lie anywhere in the set; what is computed with
// them reads them here, where they follow one another.
type Batch struct {
	features int       // distinct ones
	labels   []float32 // of the examples
	ends     []int32   // where each example's features end in
	local    []int32   // … their numbers, and
	values   []float32 // … their values
}

// A gatherer makes batches of a set's examples, and knows how their values lie
// in a buffer: the bias, the weight of each distinct feature, the factor of
// each. It belongs to one goroutine.
type gatherer struct {
	m    *model
	keys keys
	set  *libsvm.Set
	rows distinct.Rows

	ones    bool      // all values of the set are 1, so that nobody reads them
	one     []float32 // 1s
	margins []float32 // of some examples of a batch
	sums    []float32 // … of their factors
	norms   []float32 // squared ones of the batch's factors, of all outputs of a feature after the other
	touched uint32    // of no meaning: without it, nothing would be read
}

func newGatherer(m *model, k keys, set *libsvm.Set) gatherer {
	g := gatherer{m: m, keys: k, set: set}
	g.ones = !slices.ContainsFunc(set.Values, func(x float32) bool { return x != 1 })
	return g
}

// line is how many numbers of four bytes a processor fetches at once, on most.
const line = 16

// touch returns how many features examples have, and reads one of each line. Examples lie
// anywhere in the set, and a processor fetches many lines at once if nothing else is to be done with them. So
// where examples begin is read of all of them before what is there.
func (g *gatherer) touch(examples []int32) (features int) {
	s, sum := g.set, g.touched
	for _, e := range examples {
		features += s.Starts[e+1] - s.Starts[e]
		sum += math.Float32bits(s.Labels[e])
	}
	for _, e := range examples {
		from, to := s.Starts[e], s.Starts[e+1]
		for i := from; i < to; i += line {
			sum += s.Features[i]
			if !g.ones {
				sum += math.Float32bits(s.Values[i])
			}
		}
		if to > from { // the last line may begin between
			sum += s.Features[to-1]
			if !g.ones {
				sum += math.Float32bits(s.Values[to-1])
			}
		}
	}
	g.touched = sum
	return features
}

// gather fills b with examples and returns their keys, appended to ks.
func (g *gatherer) gather(b *Batch, ks []godwit.Key, examples []int32) []godwit.Key {
	n := g.touch(examples)
	b.labels, b.ends = buffer.Sized(b.labels, len(examples)), buffer.Sized(b.ends, len(examples))
	b.local = buffer.Sized(b.local, n)
	if g.ones {
		for len(g.one) < n {
			g.one = append(g.one, 1)
		}
		b.values = g.one[:n]
	} else {
		b.values = buffer.Sized(b.values, n)
	}
	g.rows.Reset()
	at := 0
	for i, e := range examples {
		y, fs, xs := g.set.Row(int(e))
		g.rows.Number(b.local[at:at+len(fs)], fs)
		if !g.ones {
			copy(b.values[at:], xs)
		}
		at += len(fs)
		b.labels[i], b.ends[i] = y, int32(at)
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

// example returns the numbers of the features of an example, and their values.
func (b *Batch) example(e int) (local []int32, values []float32) {
	from := int32(0)
	if e > 0 {
		from = b.ends[e-1]
	}
	return b.local[from:b.ends[e]], b.values[from:b.ends[e]]
}

// together is of how many examples of a batch the margins are computed before they are used: so many that functions of vectors pay, and
// few enough for their products to be in a double.
const together = 64

// forward computes the margins of the examples of a batch, some at a time, and calls do with these: the first of them, their labels, and the
// margins of one after the other, which do may change.
func (g *gatherer) forward(b *Batch, vals []float32, do func(first int, labels, margins []float32)) {
	w, v := vals[g.weightsAt():], vals[g.factorsAt(b):]
	n, row := g.m.outputs(), g.m.factorDim()
	most := min(together, len(b.labels))
	g.margins, g.sums = buffer.Sized(g.margins, most*n), buffer.Sized(g.sums, most*row)
	g.measure(v[:b.features*row])
	for first := 0; first < len(b.labels); first += together {
		labels := b.labels[first:min(first+together, len(b.labels))]
		all := g.margins[:n*len(labels)]
		clear(all)
		clear(g.sums)
		for i := range labels {
			ids, xs := b.example(first + i)
			margins := all[i*n : (i+1)*n]
			if g.m.bias {
				copy(margins, vals)
			}
			if n == 1 {
				sum, dim := margins[0], g.m.dim
				for k, id := range ids {
					sum += w[int(id)*dim] * xs[k]
				}
				margins[0] = sum
			} else {
				for k, id := range ids {
					vec.AXPY(margins, xs[k], w[int(id)*n:(int(id)+1)*n])
				}
			}
			if row > 0 {
				g.pairs(v, ids, xs, margins, g.sums[i*row:(i+1)*row])
			}
		}
		do(first, labels, all)
	}
}

// measure computes the squared norm of each factor of a batch, which stands in several of its examples.
func (g *gatherer) measure(v []float32) {
	if k := g.m.factors; k > 0 {
		g.norms = buffer.Sized(g.norms, len(v)/k)
		for i := range g.norms {
			g.norms[i] = vec.SquaredNorm(v[i*k : (i+1)*k])
		}
	}
}

// pairs adds Σ_{i<j} ⟨vᵢ, vⱼ⟩·xᵢ·xⱼ to each margin of an example, in the time of the features (Rendle 2010, lemma
// 3.1): half of |Σ vᵢ·xᵢ|² - Σ |vᵢ·xᵢ|². It adds Σ vᵢ·xᵢ to sums, which are 0, of an output after the other.
func (g *gatherer) pairs(v []float32, ids []int32, xs, margins, sums []float32) {
	k, row, n := g.m.factors, len(sums), len(margins)
	xs = xs[:len(ids)]
	for c := range margins {
		sum, own := sums[c*k:(c+1)*k], float32(0)
		for i, id := range ids {
			x, at := xs[i], int(id)*row+c*k
			vec.AXPY(sum, x, v[at:at+k])
			own += x * x * g.norms[int(id)*n+c]
		}
		margins[c] += (vec.SquaredNorm(sum) - own) / 2
	}
}
