package shards

import "github.com/godwit-ps/godwit"

// Away reports of each of some keys whether a pull would have to ask another node, and what Left
// returns of it.
func (s *Set) Away(keys []godwit.Key, away []bool, left []uint64) {
	for n := 0; len(keys) > 0; keys, away, left = keys[n:], away[n:], left[n:] {
		n = s.together(keys)
		x := s.shard(keys[0])
		x.Lock()
		for i, k := range keys[:n] {
			away[i], left[i] = !x.closed && x.Shard.Asks(k), x.Departures()
		}
		x.Unlock()
	}
}

// Left returns how many rows have left the shard of a key so far, or moved here.
func (s *Set) Left(k godwit.Key) uint64 {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.Departures()
}

// LeftSince reports whether the row of a key may have left this node, or moved here, since Left returned a number.
func (s *Set) LeftSince(k godwit.Key, since uint64) bool {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.DepartedSince(k, since)
}
