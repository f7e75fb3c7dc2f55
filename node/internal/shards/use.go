package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/latch"
)

// Used reports whether anybody has accessed a key, and known whether this node knows that: its home does, and who has a row of it.
// No row is made. If the rows are gone, the key counts as used.
func (s *Set) Used(k godwit.Key) (used, known bool) {
	x := s.shard(k)
	if latch.Optimistic {
		if h := x.Look(k); h != nil && h.Key == k {
			return true, true
		}
	}
	x.Lock()
	defer x.Unlock()
	if x.over() {
		return true, true
	}
	return x.Touched(k)
}
