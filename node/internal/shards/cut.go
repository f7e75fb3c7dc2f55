package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// With calls do with the shard of a key, locked. It reports false, and does not, if the rows are
// gone or no row may be made any more.
func (s *Set) With(k godwit.Key, do func(*protocol.Shard)) bool {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	if x.over() {
		return false
	}
	do(x.Shard)
	s.noteWork(x, k)
	return true
}

// WithEach calls do with each shard, locked, unless the rows are gone.
func (s *Set) WithEach(do func(*protocol.Shard)) {
	for i := range s.shards {
		s.With(godwit.Key(i), do)
	}
}
