package sampling

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// maxPowerRows bounds the rows of an alias table, whose entries hold 32 bits.
const maxPowerRows = math.MaxUint32

// power draws from an alias table (Walker 1977, in the linear-time construction
// of Vose 1991): the probability 1 is divided into one column per row, each
// shared by at most two rows.
type power struct {
	name    string
	columns []column
	probs   []float64
	support uint64
}

// A column belongs to its own row below the threshold (in units of 2^-32) and
// to the other row above it.
type column struct {
	threshold uint32
	other     uint32
}

// Power gives row i a probability in proportion to freq[i]^exponent, such as
// the unigram^0.75 of word2vec. Frequencies are counts or any other unit, finite
// and not negative; rows of frequency 0 are never drawn. The frequencies are
// not kept.
//
// A row's column is divided at a multiple of 2^-32, so drawn probabilities
// differ from Prob by about 2^-32/len(freq), times the columns that feed a row.
// Memory is 16 bytes a row, a draw costs one random number and one access.
func Power(freq []float64, exponent float64) (Distribution, error) {
	if len(freq) > maxPowerRows {
		return nil, fmt.Errorf("sampling: power distribution over %d rows, at most %d are possible", len(freq), uint64(maxPowerRows))
	}
	if math.IsNaN(exponent) || math.IsInf(exponent, 0) {
		return nil, fmt.Errorf("sampling: power distribution with exponent %v, want a finite number", exponent)
	}
	p := &power{name: fmt.Sprintf("power(%d,%v)", len(freq), exponent), probs: make([]float64, len(freq))}
	if err := p.weigh(freq, exponent); err != nil {
		return nil, err
	}
	p.layColumns()
	return p, nil
}

// weigh sets probs and support.
func (p *power) weigh(freq []float64, exponent float64) error {
	largest := 0.0
	for i, f := range freq {
		if !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("sampling: row %d has frequency %v, want a finite number that is not negative", i, f)
		}
		if f > 0 {
			// In logarithms, so that no exponent overflows.
			p.probs[i] = exponent * math.Log(f)
			if p.support == 0 || p.probs[i] > largest {
				largest = p.probs[i]
			}
			p.support++
		}
	}
	if p.support == 0 {
		return fmt.Errorf("sampling: power distribution over %d rows, none with a positive frequency", len(freq))
	}
	sum := 0.0
	for i, f := range freq {
		if f > 0 {
			p.probs[i] = math.Exp(p.probs[i] - largest)
			sum += p.probs[i]
		}
	}
	p.support = 0 // a row far below the largest may have vanished
	for i := range p.probs {
		p.probs[i] /= sum
		if p.probs[i] > 0 {
			p.support++
		}
	}
	return nil
}

// layColumns pairs rows that fill less than a column with rows that fill more.
func (p *power) layColumns() {
	n := len(p.probs)
	p.columns = make([]column, n)
	fill := make([]float64, n) // what is left of each row, in columns
	stack := make([]uint32, n) // small rows from the front, large ones from the back
	small, large := 0, n
	for i, q := range p.probs {
		fill[i] = q * float64(n)
		if fill[i] < 1 {
			stack[small] = uint32(i)
			small++
		} else {
			large--
			stack[large] = uint32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := stack[small], stack[large]
		p.columns[s] = column{threshold: uint32(fill[s] * (1 << 32)), other: l}
		fill[l] -= 1 - fill[s]
		if fill[l] < 1 {
			large++
			stack[small] = l
			small++
		}
	}
	// What is left over fills a column, up to rounding.
	for _, rows := range [2][]uint32{stack[:small], stack[large:]} {
		for _, i := range rows {
			p.columns[i] = column{threshold: math.MaxUint32, other: i}
		}
	}
}

func (p *power) Name() string            { return p.name }
func (p *power) Rows() uint64            { return uint64(len(p.columns)) }
func (p *power) Support() uint64         { return p.support }
func (p *power) Prob(row uint64) float64 { return p.probs[row] }

// Draw scales one random number to the columns: the integer part picks the
// column, the fraction a side of it.
func (p *power) Draw(r *rand.Rand) uint64 {
	col, fraction := bits.Mul64(r.Uint64(), uint64(len(p.columns)))
	c := p.columns[col]
	if uint32(fraction>>32) < c.threshold {
		return col
	}
	return uint64(c.other)
}
