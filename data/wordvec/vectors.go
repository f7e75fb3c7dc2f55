package wordvec

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
)

// Vectors are named vectors of equal length.
type Vectors struct {
	Names []string // of the vectors, by number
	Dim   int      // floats of a vector, at least 1
	// Vals are the vectors one after the other.
	Vals []float32
	ids  map[string]int
}

// New returns vectors. Where names are equal, the first one counts.
func New(names []string, dim int, vals []float32) (*Vectors, error) {
	if dim < 1 || len(vals) != len(names)*dim {
		return nil, fmt.Errorf("wordvec: %d numbers for %d vectors of %d", len(vals), len(names), dim)
	}
	v := &Vectors{Names: names, Dim: dim, Vals: vals, ids: make(map[string]int, len(names))}
	for i, n := range names {
		if _, ok := v.ids[n]; !ok {
			v.ids[n] = i
		}
	}
	return v, nil
}

// ID returns the number of a name.
func (v *Vectors) ID(name string) (id int, ok bool) {
	id, ok = v.ids[name]
	return id, ok
}

// Vector returns vector id, which is part of Vals.
func (v *Vectors) Vector(id int) []float32 { return v.Vals[id*v.Dim : (id+1)*v.Dim : (id+1)*v.Dim] }

// Normalize scales each vector of dim floats to length 1. One without a length,
// or that is not finite, becomes 0, which is near to no vector.
func Normalize(vals []float32, dim int) {
	for ; len(vals) > 0; vals = vals[dim:] {
		x := vals[:dim]
		n := math.Sqrt(float64(vec.SquaredNorm(x)))
		if !(n > 0) || math.IsInf(n, 0) {
			clear(x)
			continue
		}
		vec.Scale(x, float32(1/n))
	}
}

// A Neighbour is a vector that is near.
type Neighbour struct {
	Name   string  `json:"name"`   // of the vector
	Cosine float64 `json:"cosine"` // of the angle to the query, -1 … 1
}

// Nearest returns the k vectors nearest to a query, nearest first, but for those
// in without. The vectors are normalized.
func (v *Vectors) Nearest(query []float32, k int, without ...int) []Neighbour {
	q := append([]float32(nil), query...)
	Normalize(q, v.Dim)
	skip := map[int]bool{}
	for _, id := range without {
		skip[id] = true
	}
	var best []Neighbour // k at most, in order
	for i := range v.Names {
		if skip[i] {
			continue
		}
		n := Neighbour{v.Names[i], float64(vec.Dot(q, v.Vector(i)))}
		if len(best) == k && (k == 0 || n.Cosine <= best[k-1].Cosine) {
			continue
		}
		at := len(best)
		for at > 0 && n.Cosine > best[at-1].Cosine {
			at--
		}
		if len(best) < k {
			best = append(best, Neighbour{})
		}
		copy(best[at+1:], best[at:])
		best[at] = n
	}
	return best
}

// Analogy returns the k best answers to "a is to b as c is to ?", best first.
// The vectors are normalized.
func (v *Vectors) Analogy(a, b, c int, k int) []Neighbour {
	q := append([]float32(nil), v.Vector(b)...)
	vec.Sub(q, v.Vector(a))
	vec.Add(q, v.Vector(c))
	return v.Nearest(q, k, a, b, c)
}
