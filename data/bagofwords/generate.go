package bagofwords

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Spec describes documents to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Documents, Length, Words and Topics are the numbers of documents, of words
	// of each, of different words, and of topics that they are about.
	Documents, Length, Words, Topics int
	// Exponent is that of the popularity of words within a topic, 0.5 … 3.
	Exponent float64
	// Seed decides everything that is drawn: equal specs give equal documents.
	Seed uint64
}

// DefaultSpec describes documents that train in seconds.
func DefaultSpec() Spec {
	return Spec{Documents: 3000, Length: 100, Words: 2000, Topics: 20, Exponent: 1.2, Seed: 1}
}

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	for _, f := range []struct {
		name        string
		got, lo, hi int
	}{
		{"Documents", s.Documents, 1, 1 << 24}, {"Length", s.Length, 1, 1 << 20},
		{"Words", s.Words, 2, 1 << 20}, {"Topics", s.Topics, 1, 1 << 10},
	} {
		if f.got < f.lo || f.got > f.hi {
			return setting.Outside("bagofwords.Spec", f.name, f.got, f.lo, f.hi)
		}
	}
	if !(s.Exponent >= 0.5 && s.Exponent <= 3) {
		return setting.Outside("bagofwords.Spec", "Exponent", s.Exponent, 0.5, 3)
	}
	return nil
}

// Generate makes documents of one to three topics each. Every topic has an order
// of the words of its own, in which the word of rank r has a weight of
// r^-Exponent.
func Generate(s Spec) (*Set, error) {
	set, _, err := GenerateWithTruth(s)
	return set, err
}

// GenerateWithTruth is Generate and returns the words of each topic too, the
// most likely first.
func GenerateWithTruth(s Spec) (set *Set, topics [][]int32, err error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x62616773))
	set = &Set{}
	digits := len(fmt.Sprint(s.Words - 1))
	for w := range s.Words {
		set.Names = append(set.Names, fmt.Sprintf("w%0*d", digits, w))
	}
	for range s.Topics {
		order := make([]int32, s.Words)
		for i, w := range r.Perm(s.Words) {
			order[i] = int32(w)
		}
		topics = append(topics, order)
	}
	sums, sum := make([]float64, s.Words), 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s.Exponent)
		sums[i] = sum
	}
	doc := make([]int32, s.Length)
	for range s.Documents {
		about := make([]int, 1+r.IntN(3))
		for i := range about {
			about[i] = r.IntN(s.Topics)
		}
		for i := range doc {
			rank, _ := slices.BinarySearch(sums, r.Float64()*sum)
			doc[i] = topics[about[r.IntN(len(about))]][min(rank, s.Words-1)]
		}
		set.Append(doc)
	}
	return set, topics, nil
}
