package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// Main appends the row of a key to dst, value and state, if its main copy is here.
func (s *Shard) Main(k godwit.Key, dst []float32) ([]float32, bool) {
	ref, ok := s.st.Find(k)
	if !ok {
		return dst, false
	}
	if st := stateOf(s.st.Header(ref)); st != owner && st != tentative {
		return dst, false
	}
	return append(dst, s.st.Floats(ref)...), true
}

// EachMain calls do with each key whose main copy is here, in no particular order.
func (s *Shard) EachMain(do func(godwit.Key)) {
	s.st.Each(func(ref store.Ref) {
		if st := stateOf(s.st.Header(ref)); st == owner || st == tentative {
			do(s.st.Header(ref).Key)
		}
	})
}

// Restore makes a row of a key, value and state, the main copy's, and reports whether that is
// here. Copies at other nodes follow in the next rounds.
func (s *Shard) Restore(k godwit.Key, row []float32) bool {
	ref, ok := s.find(k)
	if !ok || stateOf(s.st.Header(ref)) != owner {
		return false
	}
	h := s.st.Header(ref)
	copy(s.st.Floats(ref), row)
	s.renewed(h)
	return true
}

// renewed notes that the main copy was overwritten, its state included.
func (s *Shard) renewed(h *store.Header) {
	if hasSide(h) {
		m := s.main(h)
		for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
			x.full = 0 // its state is another one now
		}
	}
	s.touch(h)
}
