package triples

import (
	"math"
	"math/rand/v2"
)

// A class is a latent group of entities: its members stand in the same
// relations to the same entities. That is what there is to learn.
type class struct{ first, size uint32 } // members have the ranks first … first+size-1

// maxClass bounds the members of a class in any graph. Larger classes are
// easier to learn and give more triples to each fact between classes.
const maxClass = 16

// classCap bounds the members of a class such that an average entity has
// triples with about three classes.
func (s Spec) classCap() int {
	return max(2, min(2*s.Triples/s.Entities/3, maxClass))
}

// makeClasses cuts the entities, ordered by popularity, into classes of
// neighbours: members are about equally popular, within an eighth, so that
// the popularity of classes gives each entity its own. The most popular
// entities are alone in their classes, as a country or a genre is.
func makeClasses(s Spec) []class {
	var cs []class
	for at := 0; at < s.Entities; {
		size := min(1+at/8, s.classCap(), s.Entities-at)
		cs = append(cs, class{uint32(at), uint32(size)})
		at += size
	}
	return cs
}

// A deck deals classes as often as they are popular: each class has cards in
// proportion to the popularity of one of its members, and all cards are dealt
// before the deck is shuffled again. A class that has its share of the triples
// is dealt no more, so that the frequencies end close to the law: the patterns
// alone would keep the most popular classes below it.
type deck struct {
	rand   *rand.Rand
	cards  []uint32  // all cards
	live   []uint32  // this round's, dealt up to next
	next   int       // in live
	left   []float64 // of a class: the triples that a member still takes part in
	fresh  []uint32  // the classes in random order, to be served first
	served []bool    // classes that have triples
}

// cardsOfLeast is the number of cards of the least popular class.
const cardsOfLeast = 2

// makeDeck makes the deck for planting a number of triples.
func makeDeck(s Spec, cs []class, triples int, r *rand.Rand) *deck {
	d := &deck{rand: r, left: make([]float64, len(cs)), served: make([]bool, len(cs))}
	least, sum := s.popularity(s.Entities-1), 0.0
	for i, c := range cs {
		d.left[i] = s.popularity(int(c.first + c.size/2))
		sum += d.left[i] * float64(c.size)
		d.fresh = append(d.fresh, uint32(i))
		for range max(cardsOfLeast, int(math.Round(cardsOfLeast*d.left[i]/least))) {
			d.cards = append(d.cards, uint32(i))
		}
	}
	for i := range d.left {
		d.left[i] *= 2 * float64(triples) / sum // a triple has two entities
	}
	shuffle(r, d.fresh)
	d.reshuffle()
	return d
}

func shuffle[T any](r *rand.Rand, s []T) {
	r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// deal returns the next class, or reports that all have their share. Classes
// without any triples come first, so that none is left without.
func (d *deck) deal() (c uint32, ok bool) {
	for len(d.fresh) > 0 {
		c, d.fresh = d.fresh[0], d.fresh[1:]
		if !d.served[c] {
			return c, true
		}
	}
	for {
		if d.next == len(d.live) && !d.reshuffle() {
			return 0, false
		}
		c = d.live[d.next]
		d.next++
		if d.left[c] > 0 {
			return c, true
		}
	}
}

// reshuffle begins a round with the classes that lack triples, if any.
func (d *deck) reshuffle() bool {
	d.live, d.next = d.live[:0], 0
	for _, c := range d.cards {
		if d.left[c] > 0 {
			d.live = append(d.live, c)
		}
	}
	shuffle(d.rand, d.live)
	return len(d.live) > 0
}

// draw returns a class by popularity without dealing it, if possible one that
// lacks triples.
func (d *deck) draw() (c uint32) {
	if len(d.live) == 0 {
		return d.any()
	}
	for range 20 {
		if c = d.live[d.rand.IntN(len(d.live))]; d.left[c] > 0 {
			break
		}
	}
	return c
}

// serve notes that each member of the class took part in n more triples.
func (d *deck) serve(c uint32, n int) {
	d.left[c] -= float64(n)
	d.served[c] = true
}

// drop deals the class no more.
func (d *deck) drop(c uint32) { d.left[c] = 0 }

// any returns a class by popularity, whatever it has.
func (d *deck) any() uint32 { return d.cards[d.rand.IntN(len(d.cards))] }
