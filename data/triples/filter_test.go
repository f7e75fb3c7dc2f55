package triples

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTheFilterKnowsWhatASlowTwinKnows(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		g := &Graph{Entities: make([]string, 1+r.IntN(12)), Relations: make([]string, 1+r.IntN(4))}
		for _, ts := range g.splits() {
			for range r.IntN(40) {
				*ts = append(*ts, Triple{r.Uint32N(uint32(len(g.Entities))), r.Uint32N(uint32(len(g.Relations))), r.Uint32N(uint32(len(g.Entities)))})
			}
		}
		f := NewFilter(g)
		all := slices.Concat(g.Train, g.Valid, g.Test)
		for e := range uint32(len(g.Entities) + 2) { // two that do not exist
			for rel := range uint32(len(g.Relations) + 2) {
				var objects, subjects []uint32
				for _, x := range all {
					if x.S == e && x.R == rel {
						objects = append(objects, x.O)
					}
					if x.O == e && x.R == rel {
						subjects = append(subjects, x.S)
					}
				}
				slices.Sort(objects)
				slices.Sort(subjects)
				if got, want := f.Objects(e, rel), slices.Compact(objects); !slices.Equal(got, want) {
					t.Fatalf("seed %d: objects of (%d,%d): got %v, want %v", seed, e, rel, got, want)
				}
				if got, want := f.Subjects(rel, e), slices.Compact(subjects); !slices.Equal(got, want) {
					t.Fatalf("seed %d: subjects of (%d,%d): got %v, want %v", seed, rel, e, got, want)
				}
			}
		}
	}
}

func TestAnEmptyGraphHasAnEmptyFilter(t *testing.T) {
	f := NewFilter(&Graph{})
	if got := f.Objects(0, 0); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestAnswersOfTheFilterCannotBeAppendedInto(t *testing.T) {
	f := NewFilter(&Graph{Entities: make([]string, 3), Relations: make([]string, 1), Train: []Triple{{0, 0, 1}, {1, 0, 2}}})
	_ = append(f.Objects(0, 0), 99)
	if got := f.Objects(1, 0); !slices.Equal(got, []uint32{2}) {
		t.Errorf("got %v, want [2]", got)
	}
}

func BenchmarkNewFilter(b *testing.B) {
	g, err := Generate(DefaultSpec())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		NewFilter(g)
	}
}
