package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// This file tells the shards what workers do without having announced it in time (protocol.Shard.Missed).

// samples is about of how many keys of a call a shard hears.
const samples = 32

// A Teacher tells the shards what one worker asks other nodes for. Of a call of many keys it
// tells of some, each for several: what a worker does again and again shows there as well, and a
// key of such a call costs little.
type Teacher struct {
	set     *Set
	nodes   int
	relaxed bool // a table is: the nodes may have copies of what nobody announced
	calls   int  // that missed
	pulls   uint // that were served at copies
}

// Teacher returns a teacher for one goroutine, in a run of several nodes.
func (s *Set) Teacher(nodes int) Teacher {
	t := Teacher{set: s, nodes: nodes}
	for i, m := 0, s.proto.Model; i < m.Tables(); i++ {
		t.relaxed = t.relaxed || m.Table(i).Relaxed
	}
	return t
}

// usesEvery is of how many pulls that were served at copies the keys of one are counted as uses.
// Pushes to copies are counted where they are made, but pulls leave no trace there.
const usesEvery = 16

// Pulled tells the shards, now and then, which keys a worker pulled that were here, some of them at
// copies: a copy that the node asked for by itself goes when nobody uses it.
func (t *Teacher) Pulled(keys []godwit.Key) {
	if !t.relaxed {
		return
	}
	if t.pulls++; t.pulls%usesEvery == 0 {
		t.set.used(keys, usesEvery)
	}
}

// callCost is about what a message and its answer cost, in those of a key in a message of many.
const callCost = 32

// Missed takes note of a pull or push of some keys that were not here. Positions are those of
// Access.Miss.
func (t *Teacher) Missed(out *link.Sender, keys []godwit.Key, positions []int, push bool) {
	n := len(positions) / 2
	stride := 1 + n/(samples+1)
	cost := uint32(1 + callCost*min(t.nodes-1, n)/n)
	t.calls++
	for i := t.calls % stride; i < n; i += stride {
		k := keys[positions[2*i]]
		x := t.set.shard(k)
		x.lockFor(out)
		if !x.over() {
			x.Missed(out, k, push, uint32(stride), cost)
			t.set.noteWork(x, k)
		}
		x.Unlock()
	}
}

// used takes note that the node's workers pulled each of some keys about n times, where it
// has asked for them by itself.
func (s *Set) used(keys []godwit.Key, n uint32) {
	for _, k := range keys {
		s.With(k, func(x *protocol.Shard) { x.Used(k, n) })
	}
}
