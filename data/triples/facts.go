package triples

import (
	"errors"
	"math"

	"github.com/godwit-ps/godwit/data/lines"
)

// Names are the entities and relations of a graph, to find them by their names. They are
// immutable and may be used by any number of goroutines.
type Names struct{ entities, relations map[string]uint32 }

// NewNames numbers the names in their order.
func NewNames(entities, relations []string) *Names {
	n := &Names{make(map[string]uint32, len(entities)), make(map[string]uint32, len(relations))}
	for i, s := range entities {
		n.entities[s] = uint32(i)
	}
	for i, s := range relations {
		n.relations[s] = uint32(i)
	}
	return n
}

// Entity returns the number of an entity.
func (n *Names) Entity(name string) (uint32, bool) { i, ok := n.entities[name]; return i, ok }

// Relation returns the number of a relation.
func (n *Names) Relation(name string) (uint32, bool) { i, ok := n.relations[name]; return i, ok }

// LoadFacts reads the facts of a file, or those of all files of a folder (see
// [Load]), that have only such names, and counts the others.
func LoadFacts(path string, names *Names, o Options) (facts []Triple, others int, err error) {
	o.Split = nil
	g, err := Load(path, o)
	if err != nil {
		return nil, 0, err
	}
	facts, others = names.of(g)
	return facts, others, nil
}

// of returns the facts of a graph by these names.
func (n *Names) of(g *Graph) (facts []Triple, others int) {
	const none = math.MaxUint32
	numbers := func(names []string, ids map[string]uint32) []uint32 {
		x := make([]uint32, len(names))
		for i, name := range names {
			if id, ok := ids[name]; ok {
				x[i] = id
			} else {
				x[i] = none
			}
		}
		return x
	}
	entities, relations := numbers(g.Entities, n.entities), numbers(g.Relations, n.relations)
	for _, split := range g.splits() {
		for _, t := range *split {
			if t = (Triple{entities[t.S], relations[t.R], entities[t.O]}); t.S == none || t.R == none || t.O == none {
				others++
			} else {
				facts = append(facts, t)
			}
		}
	}
	return facts, others
}

// Fields splits a line of a question into head, relation and tail: at tabs, if it has
// any, else at spaces. What is not UTF-8 becomes U+FFFD, as in files; else they alias the line.
func Fields(line []byte) (head, relation, tail []byte, err error) {
	if len(line) > maxLine {
		return nil, nil, nil, errors.New("a line too long for a fact")
	}
	line, _ = lines.Mend(line)
	p := splitter{layout: layout{columns: 3, at: [3]int{0, 1, 2}, given: true}, by: separatorOf("", line)}
	f, err := p.split(line)
	return f[0], f[1], f[2], err
}
