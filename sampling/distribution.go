package sampling

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A Distribution is a probability distribution over the rows of a table. It is
// immutable and may be used by any number of goroutines; all randomness comes
// from the generator that is handed in.
type Distribution interface {
	// Name identifies the distribution and its parameters.
	Name() string
	// Rows bounds the draws: they lie in 0 … Rows()-1.
	Rows() uint64
	// Support is the number of rows with a positive Prob.
	Support() uint64
	// Prob is the probability of a row in 0 … Rows()-1.
	Prob(row uint64) float64
	// Draw draws a row.
	Draw(r *rand.Rand) uint64
}

// Uniform gives each of the first rows rows the same probability. rows is at
// least 1; [New] refuses a Spec where it is not.
func Uniform(rows uint64) Distribution { return uniform(rows) }

type uniform uint64

func (u uniform) Name() string             { return fmt.Sprintf("uniform(%d)", uint64(u)) }
func (u uniform) Rows() uint64             { return uint64(u) }
func (u uniform) Support() uint64          { return uint64(u) }
func (u uniform) Prob(uint64) float64      { return 1 / float64(u) }
func (u uniform) Draw(r *rand.Rand) uint64 { return r.Uint64N(uint64(u)) }

// LogUniform is the Zipf-like distribution over rows sorted by falling
// frequency, the usual guess where the frequencies themselves are not at hand:
//
//	P(row) = log((row+2)/(row+1)) / log(rows+1)
//
// rows is at least 1; [New] refuses a Spec where it is not.
func LogUniform(rows uint64) Distribution {
	return logUniform{rows: rows, span: math.Log1p(float64(rows))}
}

type logUniform struct {
	rows uint64
	span float64 // log(rows+1)
}

func (l logUniform) Name() string    { return fmt.Sprintf("log-uniform(%d)", l.rows) }
func (l logUniform) Rows() uint64    { return l.rows }
func (l logUniform) Support() uint64 { return l.rows }

func (l logUniform) Prob(row uint64) float64 {
	return math.Log1p(1/float64(row+1)) / l.span
}

// Draw inverts the distribution function F(row) = log(row+2)/log(rows+1).
func (l logUniform) Draw(r *rand.Rand) uint64 {
	row := uint64(math.Exp(r.Float64()*l.span)) - 1
	return min(row, l.rows-1) // exp may round up to rows+1
}
