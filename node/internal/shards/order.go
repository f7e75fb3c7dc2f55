package shards

import (
	"slices"

	"github.com/godwit-ps/godwit"
)

// An Order puts keys in the order of their shards. It holds the memory that that
// takes.
//
// Keys that follow each other are of as many shards, and to come to a shard means
// several trips to memory: its lock, its heads, its index. When many keys were
// moved, that cost more than all else. The keys of a shard in a row pay for it
// once, here and at every node that takes the records, as all have the same
// shards.
type Order struct {
	ends []int // of the keys of a part
	list []int
	keys []godwit.Key
}

// maxOrdered is for how many keys memory is kept.
const maxOrdered = 1 << 16

// Positions returns the positions of keys, by shard. Of a shard, those come
// first whose home is this node: what is said about a key depends on where that
// is, and records of one kind in a row are shorter. Positions of equal keys stay
// in order. It returns nil where there are too few keys for it to pay. The slice
// is good until the next call.
func (o *Order) Positions(s *Set, keys []godwit.Key) []int {
	if len(keys) < len(s.shards) {
		return nil
	}
	o.ends = slices.Grow(o.ends[:0], 2*len(s.shards))[:2*len(s.shards)]
	clear(o.ends)
	for _, k := range keys {
		o.ends[s.part(k)]++
	}
	end := 0
	for i, l := range o.ends {
		o.ends[i] = end
		end += l
	}
	o.list = slices.Grow(o.list[:0], len(keys))[:len(keys)]
	for i, k := range keys {
		at := &o.ends[s.part(k)]
		o.list[*at] = i
		*at++
	}
	return o.list
}

// sorted returns the keys in that order, and the positions that they had; the
// keys themselves and nil where it does not pay. The slices are good until the
// next call.
func (o *Order) sorted(s *Set, keys []godwit.Key) (by []godwit.Key, was []int) {
	if was = o.Positions(s, keys); was == nil {
		return keys, nil
	}
	o.keys = slices.Grow(o.keys[:0], len(keys))[:len(keys)]
	for i, j := range was {
		o.keys[i] = keys[j]
	}
	return o.keys, was
}

// Sort puts keys in that order.
func (o *Order) Sort(s *Set, keys []godwit.Key) {
	by, was := o.sorted(s, keys)
	if was == nil {
		return
	}
	copy(keys, by)
	if len(keys) > maxOrdered {
		o.list, o.keys = nil, nil
	}
}

// part is the half of a shard that a key is in: those whose home is here, or
// the others.
func (s *Set) part(k godwit.Key) int {
	p := 2 * int(k&s.mask)
	if s.proto.Homes.Home(k) != s.proto.Self {
		p++
	}
	return p
}
