package triples

import "slices"

// A Filter answers which facts are known, over all splits: filtered ranking
// leaves the other true answers of a query out of the ranks (Bordes et al.,
// NIPS 2013, section 4.1). It is immutable and may be used by any number of
// goroutines.
type Filter struct{ objects, subjects index }

// NewFilter indexes the triples of all splits. The ids of the triples must be
// within the graph's entities and relations, as in any graph that [Load] or
// [Generate] returned.
func NewFilter(g *Graph) *Filter {
	subject := func(t Triple) (uint32, uint64) { return t.S, uint64(t.R)<<32 | uint64(t.O) }
	object := func(t Triple) (uint32, uint64) { return t.O, uint64(t.R)<<32 | uint64(t.S) }
	return &Filter{objects: newIndex(g, subject), subjects: newIndex(g, object)}
}

// Objects returns all known o of (s, r, o), ascending and without repeats. The
// slice belongs to the filter and must not be changed.
func (f *Filter) Objects(s, r uint32) []uint32 { return f.objects.find(s, r) }

// Subjects returns all known s of (s, r, o), ascending and without repeats. The
// slice belongs to the filter and must not be changed.
func (f *Filter) Subjects(r, o uint32) []uint32 { return f.subjects.find(o, r) }

// An index maps an entity and a relation to a sorted list of entities, in four
// flat arrays: entity e has the relations rel[first[e]:first[e+1]], ascending,
// and the relation at position p has the answers ans[from[p]:from[p+1]].
type index struct {
	first []int
	rel   []uint32
	from  []int
	ans   []uint32
}

// newIndex puts each triple to its entity (a counting sort) and then sorts each
// entity's few. split gives the entity, and relation and answer in one word.
func newIndex(g *Graph, split func(Triple) (uint32, uint64)) index {
	end := make([]int, len(g.Entities)+1)
	for _, ts := range g.splits() {
		for _, t := range *ts {
			e, _ := split(t)
			end[e+1]++
		}
	}
	for e := range g.Entities {
		end[e+1] += end[e]
	}
	words := make([]uint64, end[len(g.Entities)])
	next := slices.Clone(end)
	for _, ts := range g.splits() {
		for _, t := range *ts {
			e, w := split(t)
			words[next[e]] = w
			next[e]++
		}
	}

	x := index{first: make([]int, 0, len(end))}
	for e := range g.Entities {
		x.first = append(x.first, len(x.rel))
		x.add(words[end[e]:end[e+1]])
	}
	x.first = append(x.first, len(x.rel))
	x.from = append(x.from, len(x.ans))
	x.rel, x.from, x.ans = slices.Clip(x.rel), slices.Clip(x.from), slices.Clip(x.ans)
	return x
}

// add appends the relations and answers of the next entity.
func (x *index) add(words []uint64) {
	slices.Sort(words)
	for i, w := range words {
		if i > 0 && w == words[i-1] {
			continue
		}
		if i == 0 || w>>32 != words[i-1]>>32 {
			x.rel = append(x.rel, uint32(w>>32))
			x.from = append(x.from, len(x.ans))
		}
		x.ans = append(x.ans, uint32(w))
	}
}

func (x *index) find(e, r uint32) []uint32 {
	if int(e) >= len(x.first)-1 {
		return nil
	}
	lo, hi := x.first[e], x.first[e+1]
	p, ok := slices.BinarySearch(x.rel[lo:hi], r)
	if !ok {
		return nil
	}
	from, to := x.from[lo+p], x.from[lo+p+1]
	return x.ans[from:to:to]
}
