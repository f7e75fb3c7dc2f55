package triples

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
)

// titles are usual names of columns in a first line.
var titles = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`head relation tail h r t subject predicate object s p o source target from to
		e1 e2 rel entity entity1 entity2 entity_1 entity_2 property value edge type left right lhs rhs
		head_id relation_id tail_id subject_id predicate_id object_id`) {
		m[w] = true
	}
	return m
}()

// isTitle reports whether a name is a usual one of a column.
func isTitle(name string) bool { return titles[strings.ToLower(strings.TrimSpace(name))] }

// A heading is what the first line of a split looks like.
type heading int

const (
	ordinary heading = iota
	isolated         // its names occur nowhere else
	header           // … and begin another split, too
)

// headed finds out whether a split begins with a line that names the columns: with
// names that occur in no other line.
func (g *Graph) headed(split []Triple) heading {
	if len(split) == 0 {
		return ordinary
	}
	first, begins := split[0], 0
	for _, s := range g.splits() {
		ts := *s
		if len(ts) > 0 && ts[0] == first {
			begins++
			ts = ts[1:]
		}
		for _, t := range ts {
			if t.R == first.R || t.S == first.S || t.S == first.O || t.O == first.S || t.O == first.O {
				return ordinary
			}
		}
	}
	if begins > 1 {
		return header
	}
	return isolated
}

// manyFacts is the number of facts from which on a first line whose names occur nowhere
// else is suspicious.
const manyFacts = 100

// checkHeaders refuses a graph of which a file begins with a header.
func (g *Graph) checkHeaders(paths [3]string) error {
	for i, split := range g.splits() {
		if g.headed(*split) != header {
			continue
		}
		t := (*split)[0]
		return fmt.Errorf("triples: %s:1: %q, %q and %q stand in no other line than the first ones of files, as titles of columns do: say whether they are a header (--header yes, or no), as they would become a fact",
			paths[i], g.Entities[t.S], g.Relations[t.R], g.Entities[t.O])
	}
	return nil
}

// Warnings returns properties of the splits that may spoil a model or make its metrics
// misleading, a sentence each. It looks at each triple once.
func (g *Graph) Warnings() (warnings []string) {
	if g.mended > 0 {
		warnings = append(warnings, lines.Replaced(g.mended))
	}
	for _, h := range g.headers {
		warnings = append(warnings, fmt.Sprintf("the first line names the columns and is no fact: %s", h))
	}
	if g.repeated > 0 {
		warnings = append(warnings, fmt.Sprintf("%d facts stand there more than once: each is used once, so that none is both trained and held out", g.repeated))
	}
	if len(g.Valid)+len(g.Test) == 0 {
		warnings = append(warnings, "no fact is held out: the figures are of facts to train, and say little of others")
	}
	if w := g.oddOrder(); w != "" {
		warnings = append(warnings, w)
	}
	for i, split := range g.splits() {
		if len(*split) < manyFacts || g.headed(*split) != isolated {
			continue
		}
		t := (*split)[0]
		warnings = append(warnings, fmt.Sprintf("the first fact of %s, %q %q %q, has names that no other fact has: if it names the columns, remove it",
			splitNames[i], g.Entities[t.S], g.Relations[t.R], g.Entities[t.O]))
	}
	for _, held := range []struct {
		name  string
		split []Triple
	}{{"valid", g.Valid}, {"test", g.Test}} {
		if n := g.known(held.split); n > 0 {
			warnings = append(warnings, fmt.Sprintf("%d of %d facts of %s are facts to train, too: the model has seen them, and their ranks flatter it", n, len(held.split), held.name))
		}
		if n := g.unseen(held.split); n > 0 {
			warnings = append(warnings, fmt.Sprintf("%d of %d facts of %s have an entity or a relation that no fact to train has: they cannot be learned", n, len(held.split), held.name))
		}
	}
	return warnings
}

// known counts the triples that are to be trained, too.
func (g *Graph) known(held []Triple) (n int) {
	train := make(map[Triple]bool, len(held))
	for _, t := range held {
		train[t] = false
	}
	for _, t := range g.Train {
		if _, ok := train[t]; ok {
			train[t] = true
		}
	}
	for _, t := range held {
		if train[t] {
			n++
		}
	}
	return n
}

// unseen counts the triples with a name that no triple to train has.
func (g *Graph) unseen(held []Triple) (n int) {
	entity, relation := make([]bool, len(g.Entities)), make([]bool, len(g.Relations))
	for _, t := range g.Train {
		entity[t.S], relation[t.R], entity[t.O] = true, true, true
	}
	for _, t := range held {
		if !entity[t.S] || !relation[t.R] || !entity[t.O] {
			n++
		}
	}
	return n
}
