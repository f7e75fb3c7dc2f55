package triples

import (
	"math/rand/v2"
)

// holdOut divides the facts to train into three splits, by lot. Each fact is used once, so that none
// is held out and trained; and each entity and relation keeps its last fact to train, so that
// fewer may be held out. The others keep their order.
func (g *Graph) holdOut(o Options) {
	g.once()
	n := len(g.Train)
	left := [2]int{int(o.Split[1]*float64(n) + 0.5), int(o.Split[2]*float64(n) + 0.5)}
	entities, relations := make([]int, len(g.Entities)), make([]int, len(g.Relations))
	for _, t := range g.Train {
		entities[t.S]++
		relations[t.R]++
		entities[t.O]++
	}
	to := make([]uint8, n) // 1 valid, 2 test
	for _, i := range rand.New(rand.NewPCG(o.Seed, 0x73706c6974)).Perm(n) {
		which := 1 // test first: it is the final judge
		if left[1] == 0 {
			which = 0
		}
		if left[which] == 0 {
			break
		}
		t := g.Train[i]
		entities[t.S]--
		relations[t.R]--
		entities[t.O]--
		if entities[t.S] == 0 || relations[t.R] == 0 || entities[t.O] == 0 {
			entities[t.S]++
			relations[t.R]++
			entities[t.O]++
			continue
		}
		to[i] = uint8(which + 1)
		left[which]--
	}
	all := g.Train
	g.Train = nil
	for i, t := range all {
		split := g.splits()[to[i]]
		*split = append(*split, t)
	}
}

// once leaves out facts that stand there before.
func (g *Graph) once() {
	seen := make(map[Triple]bool, len(g.Train))
	kept := g.Train[:0]
	for _, t := range g.Train {
		if !seen[t] {
			seen[t] = true
			kept = append(kept, t)
		}
	}
	g.repeated = len(g.Train) - len(kept)
	g.Train = kept
}
