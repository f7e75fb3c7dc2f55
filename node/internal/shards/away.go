package shards

import "github.com/godwit-ps/godwit"

// Away reports of each of some keys whether a pull would have to ask another node, and how many rows
// have left the key's shard so far: as long as they are not more, no row of the key has been here
// and left.
func (s *Set) Away(keys []godwit.Key, away []bool, left []uint64) {
	for n := 0; len(keys) > 0; keys, away, left = keys[n:], away[n:], left[n:] {
		n = s.together(keys)
		for _, k := range keys[min(step, len(keys)):min(step+n, len(keys))] {
			s.shard(k).PrefetchIndex(k)
		}
		x := s.shard(keys[0])
		x.Lock()
		for i, k := range keys[:n] {
			away[i], left[i] = !x.closed && x.Shard.Asks(k), x.left()
		}
		x.Unlock()
	}
}

// Left returns how many rows have left the shard of a key so far.
func (s *Set) Left(k godwit.Key) uint64 {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.left()
}

// left is Left of a shard. Its lock is held.
func (x *shard) left() uint64 { return x.Stats.MovesOut + x.Stats.Drops }
