package shards

import "github.com/godwit-ps/godwit"

// Away reports whether a pull of a key would have to ask another node, and how many rows have
// left the key's shard so far: as long as they are not more, no row of the key has been here and
// left.
func (s *Set) Away(k godwit.Key) (away bool, left uint64) {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return !x.closed && x.Shard.Asks(k), x.left()
}

// PrefetchIndex has the index of a key fetched, for Away.
func (s *Set) PrefetchIndex(k godwit.Key) { s.shard(k).PrefetchIndex(k) }

// Left returns how many rows have left the shard of a key so far.
func (s *Set) Left(k godwit.Key) uint64 {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.left()
}

// left is Left of a shard. Its lock is held.
func (x *shard) left() uint64 { return x.Stats.MovesOut + x.Stats.Drops }
