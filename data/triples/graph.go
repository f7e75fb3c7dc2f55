package triples

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Triple is a fact: entity S (the head, subject) stands in relation R to
// entity O (the tail, object). S and O index Graph.Entities, R indexes
// Graph.Relations.
type Triple struct {
	S, R, O uint32 // subject, relation, object: indexes from 0 on
}

func (t Triple) compare(u Triple) int {
	if c := cmp.Compare(t.S, u.S); c != 0 {
		return c
	}
	if c := cmp.Compare(t.R, u.R); c != 0 {
		return c
	}
	return cmp.Compare(t.O, u.O)
}

// A Graph is a knowledge graph in three splits. It is plain data: any number of
// goroutines may read it while none changes it.
type Graph struct {
	Entities, Relations []string // names, by number
	// Train is to learn from, Valid for evaluations during training, Test at the end. Valid
	// or Test may be empty.
	Train, Valid, Test []Triple

	// What a loader found, for Warnings.
	mended   int      // lines that were not UTF-8
	headers  []string // first lines that were passed over
	repeated int      // facts left out because they stand there before
	ordered  bool     // somebody said what the columns are
}

// splitNames are the stems of the files, in the order that numbers names.
var splitNames = [3]string{"train", "valid", "test"}

func (g *Graph) splits() [3]*[]Triple { return [3]*[]Triple{&g.Train, &g.Valid, &g.Test} }

// Stats are the counts of a graph that tell whether it is fit for training and
// for ranking.
type Stats struct {
	// Entities and Relations are the numbers of names.
	Entities, Relations int
	// Train, Valid and Test are the numbers of triples.
	Train, Valid, Test int

	// Duplicates is the number of triples that repeat one of their own split.
	Duplicates int
	// Leaked is the number of valid and test triples that an earlier split
	// holds too.
	Leaked int
	// UnseenEntities and UnseenRelations occur in valid or test only: nothing
	// can be learned about them.
	UnseenEntities, UnseenRelations int
	// UnseenTriples is the number of valid and test triples that name at least
	// one of them.
	UnseenTriples int
}

// Stats counts. It sorts a copy of the triples.
func (g *Graph) Stats() Stats {
	s := Stats{
		Entities: len(g.Entities), Relations: len(g.Relations),
		Train: len(g.Train), Valid: len(g.Valid), Test: len(g.Test),
	}
	g.countRepeats(&s)
	g.countUnseen(&s)
	return s
}

func (g *Graph) countRepeats(s *Stats) {
	type placed struct {
		Triple
		split int
	}
	all := make([]placed, 0, len(g.Train)+len(g.Valid)+len(g.Test))
	for i, split := range g.splits() {
		for _, t := range *split {
			all = append(all, placed{t, i})
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		if c := a.compare(b.Triple); c != 0 {
			return c
		}
		return a.split - b.split
	})
	for i := 1; i < len(all); i++ {
		switch {
		case all[i].Triple != all[i-1].Triple:
		case all[i].split == all[i-1].split:
			s.Duplicates++
		default:
			s.Leaked++
		}
	}
}

func (g *Graph) countUnseen(s *Stats) {
	const seen, unseen = 1, 2
	entity, relation := make([]uint8, len(g.Entities)), make([]uint8, len(g.Relations))
	for _, t := range g.Train {
		entity[t.S], relation[t.R], entity[t.O] = seen, seen, seen
	}
	mark := func(is *uint8, count *int) bool {
		if *is == 0 {
			*is = unseen
			*count++
		}
		return *is == unseen
	}
	for _, split := range [][]Triple{g.Valid, g.Test} {
		for _, t := range split {
			a := mark(&entity[t.S], &s.UnseenEntities)
			b := mark(&relation[t.R], &s.UnseenRelations)
			c := mark(&entity[t.O], &s.UnseenEntities)
			if a || b || c {
				s.UnseenTriples++
			}
		}
	}
}

// String gives the counts in one line; those that should be zero stand there
// only if they are not.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d entities, %d relations, %d/%d/%d triples in train/valid/test",
		s.Entities, s.Relations, s.Train, s.Valid, s.Test)
	for _, c := range []struct {
		n    int
		what string
	}{
		{s.Duplicates, "duplicate triples"},
		{s.Leaked, "valid or test triples that an earlier split holds too"},
		{s.UnseenEntities, "entities outside train"},
		{s.UnseenRelations, "relations outside train"},
		{s.UnseenTriples, "valid or test triples that cannot be learned"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, "; %d %s", c.n, c.what)
		}
	}
	return b.String()
}
