package libsvm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Spec describes examples to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Examples and Features are the numbers of both, 1 … 2^30 and 2 … 2^26.
	Examples, Features int
	// PerExample is the number of features of an example, 1 … Features.
	PerExample int
	// Relevant is the number of features that bear on the label, 1 … Features.
	// They are among the more popular half of the features.
	Relevant int
	// Exponent is the exponent of the features' popularity, 0 (all alike) … 2.
	Exponent float64
	// Classes is the number of classes, 2 … MaxClasses; 0 makes labels that are values.
	Classes int
	// Noise is the share of labels that are drawn from all classes alike, 0 … 1; of values,
	// the standard deviation of what is added to them, beside that of the values.
	Noise float64
	// Seed decides everything that is drawn: equal specs give equal examples.
	Seed uint64
}

// DefaultSpec describes examples that train in seconds: 40,000 of them with 20
// of 5,000 features each, 200 of which matter.
func DefaultSpec() Spec {
	return Spec{Examples: 40_000, Features: 5000, PerExample: 20, Relevant: 200, Exponent: 1, Classes: 2, Noise: 0.05, Seed: 1}
}

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	bad := func(field string, got, lo, hi any) error {
		return setting.Outside("libsvm.Spec", field, got, lo, hi)
	}
	switch {
	case s.Examples < 1 || s.Examples > 1<<30:
		return bad("Examples", s.Examples, 1, 1<<30)
	case s.Features < 2 || s.Features > 1<<26:
		return bad("Features", s.Features, 2, 1<<26)
	case s.PerExample < 1 || s.PerExample > s.Features:
		return bad("PerExample", s.PerExample, 1, s.Features)
	case s.Relevant < 1 || s.Relevant > s.Features:
		return bad("Relevant", s.Relevant, 1, s.Features)
	case !(s.Exponent >= 0 && s.Exponent <= 2):
		return bad("Exponent", s.Exponent, 0, 2)
	case s.Classes != 0 && (s.Classes < 2 || s.Classes > MaxClasses):
		return setting.Bad("libsvm.Spec", "Classes", s.Classes, fmt.Sprintf("0 (values) or 2 … %d classes", MaxClasses))
	case int64(s.Features)*int64(s.Classes) > 1<<30:
		return setting.Bad("libsvm.Spec", "Classes", s.Classes, fmt.Sprintf("%d features times classes to be at most 2^30", s.Features))
	case !(s.Noise >= 0 && s.Noise <= 1):
		return bad("Noise", s.Noise, 0, 1)
	}
	return nil
}

// Generate makes examples of a sparse linear model. The feature of popularity
// rank k is drawn with a weight of (k+1+shift)^-Exponent, where the shift, a
// 250th of the features, keeps any from being in all examples. Features have the
// value 1. Relevant features have weights of a normal distribution, such that
// the margins of examples have a mean of about 0, by a bias, and a standard
// deviation of about 4; a label is drawn from the logistic function of the
// margin, or by a coin. Of more than two classes, each has weights of its own for the relevant
// features, and labels are drawn from the softmax of the margins. A value is the margin.
//
// Numbers say nothing of popularity.
func Generate(s Spec) (*Set, error) {
	set, _, _, err := generate(s)
	return set, err
}

// generate is Generate and returns the weights of all features too,
// most of them zero, and the bias: of each class one after the other, if there are more than two.
func generate(s Spec) (set *Set, weights []float32, bias []float64, err error) {
	if err := s.Check(); err != nil {
		return nil, nil, nil, err
	}
	g := newGenerator(s)
	set = &Set{Width: s.Features, Classes: s.names()}
	ones := make([]float32, s.PerExample)
	for i := range ones {
		ones[i] = 1
	}
	features := make([]uint32, s.PerExample)
	for range s.Examples {
		g.draw(features)
		set.Append(g.label(features), features, ones)
	}
	return set, g.weights, g.bias, nil
}

// names are the labels of classes: those of two are -1 and 1, of more 0, 1, 2, …
func (s Spec) names() []string {
	if s.Classes == 2 {
		return []string{"-1", "1"}
	}
	var names []string
	for c := range s.Classes {
		names = append(names, strconv.Itoa(c))
	}
	return names
}

// outputs is how many margins an example has.
func (s Spec) outputs() int {
	if s.Classes > 2 {
		return s.Classes
	}
	return 1
}

// marginSpread is the standard deviation of margins.
const marginSpread = 4

type generator struct {
	spec    Spec
	rand    *rand.Rand
	names   []uint32  // of ranks
	sums    []float64 // of the ranks' popularities, up to and with each
	weights []float32 // of an output after the other
	bias    []float64
	margins []float64
	taken   []bool
	ranks   []int
}

func newGenerator(s Spec) *generator {
	r := rand.New(rand.NewPCG(s.Seed, 0x6c696273766d))
	g := &generator{spec: s, rand: r, sums: make([]float64, s.Features), weights: make([]float32, s.Features*s.outputs()), margins: make([]float64, s.outputs()), taken: make([]bool, s.Features)}
	sum, shift := 0.0, float64(s.Features)/250
	share := make([]float64, s.Features)
	for k := range g.sums {
		share[k] = math.Pow(float64(k+1)+shift, -s.Exponent)
		sum += share[k]
		g.sums[k] = sum
		g.names = append(g.names, uint32(k))
	}
	r.Shuffle(len(g.names), func(i, j int) { g.names[i], g.names[j] = g.names[j], g.names[i] })
	for at := 0; at < len(g.weights); at += s.Features {
		g.bias = append(g.bias, g.truth(g.weights[at:at+s.Features], share, sum))
	}
	return g
}

// truth draws the weights of an output and returns its bias.
func (g *generator) truth(weights []float32, share []float64, sum float64) (bias float64) {
	s := g.spec
	half := max(s.Features/2, s.Relevant)
	mean, variance := 0.0, 0.0
	for _, k := range g.rand.Perm(half)[:s.Relevant] {
		w := g.rand.NormFloat64()
		weights[g.names[k]] = float32(w)
		p := min(1, float64(s.PerExample)*share[k]/sum) // about the share of examples with the feature
		mean += p * w
		variance += p * (1 - p) * w * w
	}
	scale := marginSpread / math.Sqrt(max(variance, 1e-9))
	for i := range weights {
		weights[i] *= float32(scale)
	}
	return -mean * scale
}

// draw fills features with different ones, ascending.
func (g *generator) draw(features []uint32) {
	g.ranks = g.ranks[:0]
	for i := range features {
		k := g.rank()
		// Where most are taken, the next free one will do.
		for tries := 0; g.taken[k]; tries++ {
			if k = g.rank(); tries > 20 {
				for g.taken[k] {
					k = (k + 1) % len(g.taken)
				}
			}
		}
		g.taken[k] = true
		g.ranks = append(g.ranks, k)
		features[i] = g.names[k]
	}
	for _, k := range g.ranks {
		g.taken[k] = false
	}
	slices.Sort(features)
}

func (g *generator) rank() int {
	x := g.rand.Float64() * g.sums[len(g.sums)-1]
	k, _ := slices.BinarySearch(g.sums, x)
	return min(k, len(g.sums)-1)
}

func (g *generator) label(features []uint32) float32 {
	for c := range g.margins {
		g.margins[c] = g.bias[c]
		for _, f := range features {
			g.margins[c] += float64(g.weights[c*g.spec.Features+int(f)])
		}
	}
	if g.spec.Classes == 0 {
		return float32(g.margins[0] + marginSpread*g.spec.Noise*g.rand.NormFloat64())
	}
	if g.rand.Float64() < g.spec.Noise {
		return float32(g.spec.Classes - 1 - g.rand.IntN(g.spec.Classes))
	}
	return float32(g.class())
}

// class draws a class by the margins.
func (g *generator) class() int {
	if len(g.margins) == 1 {
		if g.rand.Float64() < 1/(1+math.Exp(-g.margins[0])) {
			return 1
		}
		return 0
	}
	largest, sum := slices.Max(g.margins), 0.0
	for c, m := range g.margins {
		g.margins[c] = math.Exp(m - largest)
		sum += g.margins[c]
	}
	x := g.rand.Float64() * sum
	for c, p := range g.margins {
		if x -= p; x < 0 {
			return c
		}
	}
	return len(g.margins) - 1
}
