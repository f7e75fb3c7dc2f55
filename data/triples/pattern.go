package triples

import "fmt"

// A pattern is a rule that a relation, or a few relations together, obey. Each has a
// matching property in a bilinear model such as ComplEx (Trouillon et al.,
// ICML 2016), which a model with one kind of matrix would miss.
type pattern uint8

const (
	symmetric     pattern = iota // (a,r,b) and (b,r,a)
	antisymmetric                // (a,r,b) only upwards in an order of the classes
	inverse                      // (a,r,b) and (b,r',a)
	functional                   // each class has at most one class as its tail
	oneToMany                    // each class has at most one entity as its head
	composition                  // (A,r,B), (B,r',C) and (A,r",C), between classes
)

// A family is the relations of one pattern: 1, 2 or 3 of them, from number r on.
type family struct {
	pattern
	r uint32
}

var patternNames = [...][]string{
	symmetric:     {"symmetric"},
	antisymmetric: {"ordered"},
	inverse:       {"inverse-a", "inverse-b"},
	functional:    {"functional"},
	oneToMany:     {"one-to-many"},
	composition:   {"composed-a", "composed-b", "composed-ab"},
}

// makeFamilies assigns n relations to the patterns in turn, names them, and returns for
// each the relation that states the inverse, or noTwin.
func makeFamilies(n int) (fs []family, names []string, twins []uint32) {
	for turn := 0; len(names) < n; turn++ {
		p := pattern(turn % len(patternNames))
		if len(patternNames[p]) > n-len(names) {
			continue
		}
		r := uint32(len(names))
		fs = append(fs, family{p, r})
		switch p {
		case symmetric:
			twins = append(twins, r)
		case inverse:
			twins = append(twins, r+1, r)
		default:
			for range patternNames[p] {
				twins = append(twins, noTwin)
			}
		}
		for _, name := range patternNames[p] {
			names = append(names, fmt.Sprintf("%s-%d", name, 1+turn/len(patternNames)))
		}
	}
	return fs, names, twins
}

// A block is a fact between classes: every member of a stands in relation r to
// every member of b.
type block struct{ a, r, b uint32 }

// end is a block with one side left out.
type end struct{ c, r uint32 }

// A plan collects blocks that keep to the patterns.
type plan struct {
	classes []class
	order   []uint32 // a random order of the classes, for antisymmetric relations
	blocks  map[block]struct{}
	// minBlock is the least number of triples of a block. Of a smaller one, too
	// few would be left in train to tell about those held out.
	minBlock uint32
	tailed   map[end]struct{} // classes that have a tail in a functional relation
	headed   map[end]struct{} // classes that have a head in a one-to-many relation
}

// take adds the blocks of one fact of family f between the classes a, b and,
// for compositions, c. It returns none, and changes nothing, where the pattern
// forbids them or they are not new.
//
// A twin of a block states the same facts by another relation: members of both are held out
// together or not at all.
func (p *plan) take(f family, a, b, c uint32) (bs []block, twin bool) {
	switch f.pattern {
	case symmetric:
		bs, twin = []block{{a, f.r, b}, {b, f.r, a}}, true
		if a == b {
			if p.classes[a].size < 3 { // 2 members would make a single fact
				return nil, false
			}
			bs = bs[:1]
		}
	case antisymmetric:
		if p.order[a] > p.order[b] {
			a, b = b, a
		}
		bs = []block{{a, f.r, b}}
	case inverse:
		bs, twin = []block{{a, f.r, b}, {b, f.r + 1, a}}, true
	case functional:
		bs = []block{{a, f.r, b}}
	case oneToMany:
		if p.classes[a].size > 1 {
			a, b = b, a
		}
		bs = []block{{a, f.r, b}}
	case composition:
		bs = []block{{a, f.r, b}, {b, f.r + 1, c}, {a, f.r + 2, c}}
	}
	if f.pattern != symmetric && a == b || f.pattern == composition && (a == c || b == c) {
		return nil, false
	}
	if !p.admits(f.pattern, bs) {
		return nil, false
	}
	for _, b := range bs {
		p.blocks[b] = struct{}{}
	}
	return bs, twin
}

// admits reports whether blocks are new and within the limits of their pattern,
// and records the class for the limits.
func (p *plan) admits(pt pattern, bs []block) bool {
	for _, b := range bs {
		if _, old := p.blocks[b]; old || p.classes[b.a].size*p.classes[b.b].size < p.minBlock {
			return false
		}
	}
	b := bs[0]
	switch pt {
	case functional:
		return note(p.tailed, end{b.a, b.r})
	case oneToMany:
		return p.classes[b.a].size == 1 && note(p.headed, end{b.b, b.r})
	}
	return true
}

// note adds e to a set and reports whether it is new.
func note(set map[end]struct{}, e end) bool {
	_, old := set[e]
	set[e] = struct{}{}
	return !old
}
