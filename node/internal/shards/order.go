package shards

import (
	"math"
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
	ends  []int32 // of the keys of a part
	parts []int32 // of keys
	list  []int
	keys  []godwit.Key
	pairs []int
}

// maxOrdered is for how many keys memory is kept.
const maxOrdered = 1 << 16

// Positions returns the positions of keys, by shard. Of a shard, those come
// first whose home is this node: what is said about a key depends on where that
// is, and records of one kind in a row are shorter. Where there are many keys, those of another
// home come together, so that several records in a row go to one peer. Positions of equal keys stay
// in order. It returns nil where there are too few keys for it to pay. The slice
// is good until the next call.
func (o *Order) Positions(s *Set, keys []godwit.Key) []int {
	if len(keys) < len(s.shards) || len(keys) > math.MaxInt32 {
		return nil
	}
	parts := max(min(s.proto.Nodes, len(keys)/len(s.shards)), 2)
	o.ends = slices.Grow(o.ends[:0], parts*len(s.shards))[:parts*len(s.shards)]
	clear(o.ends)
	o.parts = slices.Grow(o.parts[:0], len(keys))[:len(keys)]
	for i, k := range keys {
		p := s.part(k, parts)
		o.parts[i] = int32(p)
		o.ends[p]++
	}
	end := int32(0)
	for i, l := range o.ends {
		o.ends[i] = end
		end += l
	}
	o.list = slices.Grow(o.list[:0], len(keys))[:len(keys)]
	for i, p := range o.parts {
		at := &o.ends[p]
		o.list[*at] = i
		*at++
	}
	return o.list
}

// Misses puts the keys that an access missed in that order, if there are enough of them for it
// to pay: positions in keys, each followed by an offset.
func (o *Order) Misses(s *Set, keys []godwit.Key, miss []int) {
	if len(miss) < 2*len(s.shards) {
		return
	}
	o.keys = o.keys[:0]
	for m := 0; m < len(miss); m += 2 {
		o.keys = append(o.keys, keys[miss[m]])
	}
	o.pairs = append(o.pairs[:0], miss...)
	for i, j := range o.Positions(s, o.keys) {
		miss[2*i], miss[2*i+1] = o.pairs[2*j], o.pairs[2*j+1]
	}
	o.forget(len(o.keys))
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
	o.forget(len(keys))
}

// forget gives the memory back if there were too many keys to keep it.
func (o *Order) forget(keys int) {
	if keys > maxOrdered {
		o.list, o.parts, o.keys, o.pairs = nil, nil, nil, nil
	}
}

// part is the part of a shard that a key is in, of so many: the first are those whose home is this
// node, and those of the other homes follow, the last of them together.
func (s *Set) part(k godwit.Key, parts int) int {
	d := int(s.proto.Homes.Home(k)) - int(s.proto.Self)
	if d < 0 {
		d += s.proto.Nodes
	}
	return parts*int(k&s.mask) + min(d, parts-1)
}
