package linear

import (
	"math"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
)

// Columns are a worker's examples by places: place p has the values
// vals[starts[p]:starts[p+1]], of the examples rows beside them.
type columns struct {
	labels []bool
	starts []int
	rows   []int32
	vals   []float32
}

// newColumns takes every part.Count-th example of a set. The places are those of m.
func newColumns(m *model, set *libsvm.Set, part train.Partition) *columns {
	place := m.placing()
	c := &columns{starts: make([]int, m.places()+1)}
	for i := part.Index; i < set.Len(); i += part.Count {
		y, fs, _ := set.Row(i)
		c.labels = append(c.labels, y > 0)
		for _, f := range fs {
			c.starts[place.of(f)+1]++
		}
	}
	if m.bias {
		c.starts[m.places()] = len(c.labels)
	}
	for p := range m.places() {
		c.starts[p+1] += c.starts[p]
	}
	n := c.starts[m.places()]
	c.rows, c.vals = make([]int32, n), make([]float32, n)
	next := append([]int(nil), c.starts...)
	put := func(p int, row int, x float32) {
		c.rows[next[p]], c.vals[next[p]] = int32(row), x
		next[p]++
	}
	for row := range c.labels {
		_, fs, xs := set.Row(part.Index + row*part.Count)
		for k, f := range fs {
			put(int(place.of(f)), row, xs[k])
		}
		if m.bias {
			put(m.places()-1, row, 1)
		}
	}
	return c
}

// place returns the examples that a place has values of, and the values.
func (c *columns) place(p int) (rows []int32, vals []float32) {
	from, to := c.starts[p], c.starts[p+1]
	return c.rows[from:to], c.vals[from:to]
}

// parabola is the curvature of the parabola that touches the logistic loss at
// ±m and lies nowhere below it.
func parabola(m float64) float64 {
	m = math.Abs(m)
	if m < 1e-3 { // 1/4 - m²/48 + …
		return 0.25
	}
	return math.Tanh(m/2) / (2 * m)
}
