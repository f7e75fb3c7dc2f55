package triples

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Generate makes a graph whose facts can be learned and whose entities are as
// unequally popular as in real graphs.
//
// Entities belong to latent classes; facts hold between whole classes and are
// written out for all pairs of members (a block). Each relation keeps to one of
// six patterns, which its name tells: symmetric, ordered (antisymmetric),
// inverse pairs, functional (a map of classes), one-to-many, and composed (r"
// holds where r then r' lead). A held-out triple is predictable from the other
// triples of its block, once a model has found out who behaves alike.
//
// How often the entity of popularity rank k occurs follows (k+shift)^-Exponent, in
// steps of a class, with the shift 1/250 of the entities. In a graph too dense
// for that, whose popular entities would need more partners than there are, the
// frequencies end flatter.
//
// What is promised of the splits: no triple stands twice, in one split or in
// two; every entity and every relation of the graph occurs in train; facts that
// say the same, (a,r,b) and (b,r,a) of a symmetric or (b,r',a) of an inverse
// relation, are held out together, so that no answer of valid or test stands in
// train the other way round. The number of triples is exactly Spec.Triples;
// valid and test miss their shares by at most a fact or where too few
// facts can be spared.
func Generate(s Spec) (*Graph, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	g := newGenerator(s)
	if err := g.plant(); err != nil {
		return nil, err
	}
	if err := g.addNoise(); err != nil {
		return nil, err
	}
	return g.split(), nil
}

// A fact is a triple of entity ranks and relation, and possibly its twin, the
// relation that holds the other way round.
type fact struct {
	Triple
	twin uint32 // noTwin if there is none
}

const noTwin = math.MaxUint32

func (f fact) len() int {
	if f.twin == noTwin {
		return 1
	}
	return 2
}

// append adds the triples of the fact to ts.
func (f fact) append(ts []Triple) []Triple {
	ts = append(ts, f.Triple)
	if f.twin != noTwin {
		ts = append(ts, Triple{f.O, f.twin, f.S})
	}
	return ts
}

type generator struct {
	spec      Spec
	rand      *rand.Rand
	deck      *deck
	families  []family
	relations []string
	twins     []uint32 // of a relation: the one that says the same the other way round, or noTwin
	plan      plan
	classOf   []uint32 // of an entity's rank
	facts     []fact
	triples   int // in facts
}

func newGenerator(s Spec) *generator {
	r := rand.New(rand.NewPCG(s.Seed, 0x747269706c6573))
	cs := makeClasses(s)
	g := &generator{
		spec: s, rand: r, deck: makeDeck(s, cs, s.planted(), r),
		plan: plan{
			classes: cs, order: make([]uint32, len(cs)), minBlock: uint32(min(6, s.classCap())),
			blocks: map[block]struct{}{}, tailed: map[end]struct{}{}, headed: map[end]struct{}{},
		},
		classOf: make([]uint32, 0, s.Entities),
	}
	g.families, g.relations, g.twins = makeFamilies(s.Relations)
	for i := range g.plan.order {
		g.plan.order[i] = uint32(i)
	}
	shuffle(r, g.plan.order)
	for i, c := range cs {
		for range c.size {
			g.classOf = append(g.classOf, uint32(i))
		}
	}
	return g
}

// plant adds blocks until all but the noise is there. Families take turns, so
// that each relation gets facts.
func (g *generator) plant() error {
	want := g.spec.planted()
	for turn := 0; g.triples < want; turn++ {
		bs, twin := g.nextBlocks(turn)
		if bs == nil {
			return fmt.Errorf("triples: %d triples found no place among %d entities and %d relations; "+
				"have fewer triples or more of the others", g.spec.Triples, g.spec.Entities, g.spec.Relations)
		}
		g.writeOut(bs, twin)
	}
	for last := len(g.facts) - 1; g.triples > want; last-- {
		g.triples -= g.facts[last].len()
		g.facts = g.facts[:last]
	}
	if !g.covers() {
		return fmt.Errorf("triples: %d triples are too few to give each of %d entities and %d relations a fact; have more triples or fewer of the others",
			g.spec.Triples, g.spec.Entities, g.spec.Relations)
	}
	return nil
}

// covers reports whether each entity and each relation has a fact.
func (g *generator) covers() bool {
	entity, relation := make([]bool, g.spec.Entities), make([]bool, len(g.relations))
	for _, f := range g.facts {
		for _, t := range f.append(nil) {
			entity[t.S], relation[t.R], entity[t.O] = true, true, true
		}
	}
	return !slices.Contains(entity, false) && !slices.Contains(relation, false)
}

// nextBlocks deals classes until one finds a partner. Where none that lacks
// triples does, because the graph is dense, any class may have more than its
// share. It returns no blocks if there is hardly a place left at all.
func (g *generator) nextBlocks(turn int) (bs []block, twin bool) {
	for {
		a, ok := g.deck.deal()
		if !ok {
			break
		}
		if bs, twin = g.place(turn, a); bs != nil {
			return bs, twin
		}
		g.deck.drop(a)
	}
	for range 100 {
		if bs, twin = g.place(turn, g.deck.any()); bs != nil {
			break
		}
	}
	return bs, twin
}

// maxScan bounds the classes tried as partners after drawing found none.
const maxScan = 1000

// place finds a fact for class a: of the family whose turn it is or else of one
// of the next, with partners drawn by popularity, or at last with any partner.
func (g *generator) place(turn int, a uint32) (bs []block, twin bool) {
	for i := range g.families {
		f := g.families[(turn+i)%len(g.families)]
		for range 30 {
			if bs, twin = g.plan.take(f, a, g.deck.draw(), g.deck.draw()); bs != nil {
				return bs, twin
			}
		}
	}
	n := len(g.plan.classes)
	start := g.rand.IntN(n)
	for i := range min(n, maxScan) {
		b := uint32((start + i) % n)
		for _, f := range g.families {
			if bs, twin = g.plan.take(f, a, b, g.deck.draw()); bs != nil {
				return bs, twin
			}
		}
	}
	return nil, false
}

// writeOut adds the facts of blocks, in random order.
func (g *generator) writeOut(bs []block, twin bool) {
	from := len(g.facts)
	for _, b := range bs {
		f := fact{Triple{R: b.r}, noTwin}
		if twin {
			f.twin = bs[len(bs)-1].r
		}
		a, o := g.plan.classes[b.a], g.plan.classes[b.b]
		g.deck.serve(b.a, int(o.size)*f.len())
		g.deck.serve(b.b, int(a.size)*f.len())
		for f.S = a.first; f.S < a.first+a.size; f.S++ {
			for f.O = o.first; f.O < o.first+o.size; f.O++ {
				if b.a != b.b || f.S < f.O {
					g.facts = append(g.facts, f)
					g.triples += f.len()
				}
			}
		}
		if twin {
			break // the facts hold the second block as their twins
		}
	}
	shuffle(g.rand, g.facts[from:])
}

// addNoise fills up with triples of popular entities and any relation that no
// block explains.
func (g *generator) addNoise() error {
	seen := map[Triple]struct{}{}
	for tries := 0; g.triples < g.spec.Triples; tries++ {
		if tries > 100*g.spec.Triples {
			return fmt.Errorf("triples: no place for noise among %d entities and %d relations; have fewer triples or less noise",
				g.spec.Entities, g.spec.Relations)
		}
		t := Triple{g.drawEntity(), uint32(g.rand.IntN(len(g.relations))), g.drawEntity()}
		_, planted := g.plan.blocks[block{g.classOf[t.S], t.R, g.classOf[t.O]}]
		if _, old := seen[t]; planted || old || t.S == t.O {
			continue
		}
		seen[t] = struct{}{}
		if twin := g.twins[t.R]; twin != noTwin {
			seen[Triple{t.O, twin, t.S}] = struct{}{} // the same said the other way round
		}
		g.facts = append(g.facts, fact{t, noTwin})
		g.triples++
	}
	return nil
}

// drawEntity returns the rank of an entity, by popularity.
func (g *generator) drawEntity() uint32 {
	c := g.plan.classes[g.deck.any()]
	return c.first + g.rand.Uint32N(c.size)
}

// split holds facts out and gives all names their final numbers.
func (g *generator) split() *Graph {
	shuffle(g.rand, g.facts)
	entity, relation := make([]int, g.spec.Entities), make([]int, len(g.relations))
	count := func(f fact, by int) {
		for _, t := range f.append(nil) {
			entity[t.S] += by
			entity[t.O] += by
			relation[t.R] += by
		}
	}
	for _, f := range g.facts {
		count(f, 1)
	}
	spare := func(f fact) bool { // may it leave train?
		for _, t := range f.append(nil) {
			if min(entity[t.S], entity[t.O], relation[t.R]) <= f.len() {
				return false
			}
		}
		return true
	}
	out := &Graph{}
	valid := int(g.spec.Valid * float64(g.triples))
	test := int(g.spec.Test * float64(g.triples))
	for _, f := range g.facts {
		switch {
		case len(out.Valid) < valid && spare(f):
			out.Valid = f.append(out.Valid)
			count(f, -1)
		case len(out.Test) < test && spare(f):
			out.Test = f.append(out.Test)
			count(f, -1)
		default:
			out.Train = f.append(out.Train)
		}
	}
	for _, ts := range out.splits() {
		shuffle(g.rand, *ts)
	}
	g.number(out)
	return out
}

// number renames ranks to numbers in the order of first appearance, as Load
// would give them.
func (g *generator) number(out *Graph) {
	const none = math.MaxUint32
	entity, relation := make([]uint32, g.spec.Entities), make([]uint32, len(g.relations))
	for _, ids := range [][]uint32{entity, relation} {
		for i := range ids {
			ids[i] = none
		}
	}
	digits := len(fmt.Sprint(g.spec.Entities - 1))
	entityID := func(rank uint32) uint32 {
		if entity[rank] == none {
			entity[rank] = uint32(len(out.Entities))
			out.Entities = append(out.Entities, fmt.Sprintf("e%0*d", digits, len(out.Entities)))
		}
		return entity[rank]
	}
	relationID := func(r uint32) uint32 {
		if relation[r] == none {
			relation[r] = uint32(len(out.Relations))
			out.Relations = append(out.Relations, g.relations[r])
		}
		return relation[r]
	}
	for _, ts := range out.splits() {
		for i, t := range *ts {
			s := entityID(t.S)
			(*ts)[i] = Triple{s, relationID(t.R), entityID(t.O)}
		}
	}
}
