package ratings

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sort"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Spec describes a matrix to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Rows and Cols are the numbers of rows and columns, 2 … 2^24.
	Rows, Cols int
	// Cells is the number of cells of all parts together: at least Rows + Cols,
	// and at most half the matrix.
	Cells int
	// Rank is the rank of the matrix without its noise, 1 … 1024.
	Rank int
	// Exponent says how unequally the cells are spread over rows and columns:
	// that of Zipf's law, 0 (all alike) … 2.
	Exponent float64
	// Noise is the standard deviation of what is added to each cell, whose own is
	// 1: no model can have a smaller RMSE on cells that it does not know.
	Noise float64
	// Valid and Test are the shares of cells held out, 0 … 0.3 each.
	Valid, Test float64
	// Seed decides everything that is drawn: equal specs give equal matrices.
	Seed uint64
}

// DefaultSpec describes a matrix that trains in seconds: 2,000 rows, 1,000
// columns, 200,000 cells, rank 5.
func DefaultSpec() Spec {
	return Spec{Rows: 2000, Cols: 1000, Cells: 200_000, Rank: 5, Exponent: 1.1, Noise: 0.5, Valid: 0.05, Test: 0.05, Seed: 1}
}

const (
	maxSide  = 1 << 24
	maxCells = 1 << 28
	maxRank  = 1024

	// maxDraws bounds how often a cell is drawn until one is new, on average.
	maxDraws = 40
)

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	bad := func(field string, got, lo, hi any) error {
		return setting.Outside("ratings.Spec", field, got, lo, hi)
	}
	within := func(x, lo, hi float64) bool { return x >= lo && x <= hi } // false for NaN
	switch {
	case s.Rows < 2 || s.Rows > maxSide:
		return bad("Rows", s.Rows, 2, maxSide)
	case s.Cols < 2 || s.Cols > maxSide:
		return bad("Cols", s.Cols, 2, maxSide)
	case s.Cells < s.Rows+s.Cols || s.Cells > min(maxCells, s.Rows*s.Cols/2):
		return bad("Cells", s.Cells, fmt.Sprintf("%d (Rows + Cols)", s.Rows+s.Cols), fmt.Sprintf("%d (half the matrix, if it is not too large)", min(maxCells, s.Rows*s.Cols/2)))
	case s.Rank < 1 || s.Rank > maxRank:
		return bad("Rank", s.Rank, 1, maxRank)
	case !within(s.Exponent, 0, 2):
		return bad("Exponent", s.Exponent, 0, 2)
	case !within(s.Noise, 0, 100):
		return bad("Noise", s.Noise, 0, 100)
	case !within(s.Valid, 0, 0.3):
		return bad("Valid", s.Valid, 0, 0.3)
	case !within(s.Test, 0, 0.3):
		return bad("Test", s.Test, 0, 0.3)
	}
	return nil
}

// Generate makes a matrix of low rank with noise, as the studies of Lapse, NuPS
// and AdaPM use it: a cell is w·h + Noise·ε, with standard normal ε and factors
// w of its row and h of its column whose elements are normal with variance
// 1/√Rank, so that w·h has variance 1.
//
// Rows and columns of cells are drawn independently by Zipf's law, whatever the
// numbers of rows and columns: the most frequent ones are anywhere. A cell that
// was drawn before is drawn again, which flattens the law where the matrix is
// nearly full. Each row and column has a cell in Train. Cells come in random
// order.
func Generate(s Spec) (*Set, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x726174696e6773))
	g := &generator{
		spec: s, rand: r,
		w: factors(s.Rows, s.Rank, r), h: factors(s.Cols, s.Rank, r),
		rows: newZipf(s.Rows, s.Exponent, r), cols: newZipf(s.Cols, s.Exponent, r),
		seen: newPlaces(s.Cells),
	}
	return g.set()
}

type generator struct {
	spec       Spec
	rand       *rand.Rand
	w, h       []float32
	rows, cols *zipf
	seen       places
	cells      []Rating
}

func (g *generator) set() (*Set, error) {
	s := g.spec
	// First each row gets a cell, then each column that has none.
	empty := make([]bool, s.Cols)
	for i := range empty {
		empty[i] = true
	}
	for row := range uint32(s.Rows) {
		col := g.cols.draw(g.rand)
		empty[col] = false
		g.add(row, col)
	}
	for col := range uint32(s.Cols) {
		if empty[col] {
			for !g.add(g.rows.draw(g.rand), col) {
			}
		}
	}
	for draws := 0; len(g.cells) < s.Cells; draws++ {
		g.add(g.rows.draw(g.rand), g.cols.draw(g.rand))
		if draws > maxDraws*s.Cells {
			return nil, setting.Bad("ratings.Spec", "Cells", s.Cells, fmt.Sprintf("fewer, or a smaller exponent than %v of their popularity: only %d found a place", s.Exponent, len(g.cells)))
		}
	}
	g.rand.Shuffle(len(g.cells), func(i, j int) { g.cells[i], g.cells[j] = g.cells[j], g.cells[i] })
	set := &Set{Rows: s.Rows, Cols: s.Cols, Train: g.cells}
	set.HoldOut(s.Valid, s.Seed)
	set.Valid, set.Test = set.Test, nil
	set.HoldOut(s.Test*float64(s.Cells)/float64(len(set.Train)), s.Seed+1)
	return set, nil
}

// add adds a cell unless it is there, and reports whether it did.
func (g *generator) add(row, col uint32) bool {
	if !g.seen.add(row, col) {
		return false
	}
	d := g.spec.Rank
	w, h := g.w[int(row)*d:][:d], g.h[int(col)*d:][:d]
	x := g.spec.Noise * g.rand.NormFloat64()
	for i := range w { // not by package vec: nodes of different kinds are to generate the same bits
		x += float64(w[i] * h[i])
	}
	g.cells = append(g.cells, Rating{row, col, float32(x)})
	return true
}

// places is a set of places of a matrix: a hash table with linear probing, since
// most draws are of places that are there already.
type places struct {
	slots []uint64 // row and column, counted from 1; 0 is free
	shift int
}

// newPlaces returns a set for up to n places.
func newPlaces(n int) places {
	log := bits.Len(uint(2 * n)) // at most half full
	return places{make([]uint64, 1<<log), 64 - log}
}

// add adds a place and reports whether it was not there.
func (p places) add(row, col uint32) bool {
	at := uint64(row+1)<<32 | uint64(col+1)
	i := at * 0x9e3779b97f4a7c15 >> p.shift
	for p.slots[i] != 0 {
		if p.slots[i] == at {
			return false
		}
		i = (i + 1) & uint64(len(p.slots)-1)
	}
	p.slots[i] = at
	return true
}

// factors draws n factors of a rank.
func factors(n, rank int, r *rand.Rand) []float32 {
	std := math.Pow(float64(rank), -0.25)
	x := make([]float32, n*rank)
	for i := range x {
		x[i] = float32(std * r.NormFloat64())
	}
	return x
}

// A zipf draws numbers by Zipf's law, in any order of their frequencies.
type zipf struct {
	upTo []float64 // upTo[i] is the probability of the ranks 0 … i
	at   []uint32  // the number of a rank
}

func newZipf(n int, exponent float64, r *rand.Rand) *zipf {
	z := &zipf{upTo: make([]float64, n), at: make([]uint32, n)}
	sum := 0.0
	for i := range n {
		sum += math.Pow(float64(i+1), -exponent)
		z.upTo[i], z.at[i] = sum, uint32(i)
	}
	r.Shuffle(n, func(i, j int) { z.at[i], z.at[j] = z.at[j], z.at[i] })
	return z
}

func (z *zipf) draw(r *rand.Rand) uint32 {
	x := r.Float64() * z.upTo[len(z.upTo)-1]
	return z.at[sort.Search(len(z.upTo)-1, func(i int) bool { return z.upTo[i] > x })]
}
