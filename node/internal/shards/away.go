package shards

import "github.com/godwit-ps/godwit"

// Away reports of each of some keys whether a pull would have to ask another node, and how many rows
// have left the key's shard so far: see LeftSince.
func (s *Set) Away(keys []godwit.Key, away []bool, left []uint64) {
	s.look(keys, func(x *shard, i int, k godwit.Key) { away[i], left[i] = !x.closed && x.Asks(k), x.Departures() })
}

// Gone reports of each of some keys whether it is elsewhere, or an idle replica: one that stays as long as others hardly change it.
func (s *Set) Gone(keys []godwit.Key, gone []bool) {
	s.look(keys, func(x *shard, i int, k godwit.Key) { gone[i] = !x.closed && (x.Asks(k) || x.Idle(k)) })
}

// look calls do with each key and its place, under the lock of its shard.
func (s *Set) look(keys []godwit.Key, do func(x *shard, i int, k godwit.Key)) {
	for n := 0; n < len(keys); {
		x := s.shard(keys[n])
		x.Lock()
		for _, k := range keys[n:][:s.together(keys[n:])] {
			do(x, n, k)
			n++
		}
		x.Unlock()
	}
}

// Left returns how many rows have left the shard of a key so far.
func (s *Set) Left(k godwit.Key) uint64 {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.Departures()
}

// LeftSince reports whether the row of a key may have left this node since so many rows had left its shard.
func (s *Set) LeftSince(k godwit.Key, since uint64) bool {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	return x.DepartedSince(k, since)
}
