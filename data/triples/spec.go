package triples

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Spec describes a graph to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Entities and Relations are the numbers of names, 50 … 2^24 and 1 … 10,000.
	Entities, Relations int
	// Triples is the number of triples of all splits together, at least five for
	// each entity. Generate returns an error if there is no room for so many.
	Triples int
	// Exponent is the exponent of the entities' popularity, 0 (all alike) … 2.
	Exponent float64
	// Noise is the share of triples drawn without regard to structure, 0 … 0.5.
	// They are in all splits alike, and bound the quality that a model can reach.
	Noise float64
	// Valid and Test are the shares of triples held out, 0 … 0.3 each.
	Valid, Test float64
	// Seed decides everything that is drawn: equal specs give equal graphs.
	Seed uint64
}

// DefaultSpec describes a graph that trains in seconds: 3,000 entities, 20
// relations, 80,000 triples.
func DefaultSpec() Spec {
	return Spec{
		Entities: 3000, Relations: 20, Triples: 80_000,
		Exponent: 1, Noise: 0.02, Valid: 0.025, Test: 0.025, Seed: 1,
	}
}

const (
	maxEntities  = 1 << 24
	maxRelations = 10_000
	maxTriples   = 1 << 30
)

// Check returns what is wrong with the spec, by a *setting.Error.
func (s Spec) Check() error {
	bad := func(field string, got, lo, hi any) error {
		return setting.Outside("triples.Spec", field, got, lo, hi)
	}
	within := func(x, lo, hi float64) bool { return x >= lo && x <= hi } // false for NaN
	switch {
	case s.Entities < 50 || s.Entities > maxEntities:
		return bad("Entities", s.Entities, 50, maxEntities)
	case s.Relations < 1 || s.Relations > maxRelations:
		return bad("Relations", s.Relations, 1, maxRelations)
	case s.Triples < 5*s.Entities || s.Triples > maxTriples:
		return bad("Triples", s.Triples, fmt.Sprintf("%d (five for each entity)", 5*s.Entities), maxTriples)
	case !within(s.Exponent, 0, 2):
		return bad("Exponent", s.Exponent, 0, 2)
	case !within(s.Noise, 0, 0.5):
		return bad("Noise", s.Noise, 0, 0.5)
	case !within(s.Valid, 0, 0.3):
		return bad("Valid", s.Valid, 0, 0.3)
	case !within(s.Test, 0, 0.3):
		return bad("Test", s.Test, 0, 0.3)
	}
	return nil
}

// planted is the number of triples that are not noise.
func (s Spec) planted() int { return s.Triples - int(s.Noise*float64(s.Triples)) }

// popularity is the weight of the entity of a rank, 0 the most popular:
// (rank+1+shift)^-exponent, the law of Zipf in Mandelbrot's form.
//
// The shift flattens the head as in real graphs, where no entity takes part in
// a tenth of all facts. Without it, some thousand entities of exponent 1 would
// let the answer "the most popular ones" reach a mean reciprocal rank of 0.2
// whatever the structure is, as the sum of p(rank)/rank shows.
func (s Spec) popularity(rank int) float64 {
	return math.Pow(float64(rank+1)+s.shift(), -s.Exponent)
}

func (s Spec) shift() float64 { return float64(s.Entities) / 250 }
