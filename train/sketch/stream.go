package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/godwit-ps/godwit/data/fingerprint"
	"github.com/godwit-ps/godwit/data/setting"
)

// A Stream is items in their order. It is plain data: any number of goroutines
// may read it while none changes it.
type Stream struct {
	Items []uint64 // any numbers
}

// Fingerprint is equal for equal streams.
func (s *Stream) Fingerprint() string {
	var h fingerprint.Hash
	for _, x := range s.Items {
		h.Number(int(x))
	}
	return h.String()
}

// A Spec describes a stream to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Items is the length of the stream, 1 … 2^30.
	Items int
	// Distinct is the number of different items that there can be, 1 … 2^26.
	Distinct int
	// Exponent is the exponent of their popularity, 0 (all alike) … 3.
	Exponent float64
	// Seed decides everything that is drawn: equal specs give equal streams.
	Seed uint64
}

// DefaultSpec describes a stream of a million items.
func DefaultSpec() Spec { return Spec{Items: 1_000_000, Distinct: 200_000, Exponent: 1.1, Seed: 1} }

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	switch {
	case s.Items < 1 || s.Items > 1<<30:
		return setting.Outside("sketch.Spec", "Items", s.Items, 1, 1<<30)
	case s.Distinct < 1 || s.Distinct > 1<<26:
		return setting.Outside("sketch.Spec", "Distinct", s.Distinct, 1, 1<<26)
	case !(s.Exponent >= 0 && s.Exponent <= 3):
		return setting.Outside("sketch.Spec", "Exponent", s.Exponent, 0, 3)
	}
	return nil
}

// Generate makes a stream in which the item of popularity rank k is drawn with
// a weight of k^-Exponent.
func Generate(s Spec) (*Stream, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	sums, sum := make([]float64, s.Distinct), 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -s.Exponent)
		sums[k] = sum
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x736b65746368))
	x := &Stream{Items: make([]uint64, s.Items)}
	for i := range x.Items {
		k := sort.SearchFloat64s(sums, r.Float64()*sum)
		x.Items[i] = uint64(min(k, s.Distinct-1))
	}
	return x, nil
}

// counts returns the different items, ascending, and how often each is there.
func (s *Stream) counts() (items []uint64, counts []int64) {
	sorted := slices.Clone(s.Items)
	slices.Sort(sorted)
	for i, x := range sorted {
		if i == 0 || x != sorted[i-1] {
			items, counts = append(items, x), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	return items, counts
}
