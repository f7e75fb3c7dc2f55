package store

import (
	"unsafe"

	"github.com/godwit-ps/godwit"
)

// A row that is not in the processor's cache costs two trips to memory, one to
// the index and one to the row. Callers that know which keys come next have
// both begun early: first AheadIndex for some keys, then AheadRow for the same
// keys, then the access itself. The trips then overlap, also across locks,
// which ordinary reads do not.

// lines is how much of a row is fetched ahead. Of longer rows the processor
// fetches the rest by itself; for rows of 100 floats, 3 lines made a pull half
// as slow again as 7.
const lines = 8

const lineBytes = 64

// AheadIndex has the processor fetch the key's index entry.
func (s *Store) AheadIndex(k godwit.Key) {
	prefetch(unsafe.Pointer(&s.index[s.place(hash(k))]))
}

// AheadRow has the processor fetch the beginning of the key's row, if the first
// entry that could be the key's is its own.
func (s *Store) AheadRow(k godwit.Key) {
	h := hash(k)
	tag := tagOf(h)
	for i := s.place(h); ; i = s.next(i) {
		e := s.index[i]
		if e == empty {
			return
		}
		if e&^refMask != tag {
			continue
		}
		r := Ref(e & refMask)
		p := s.at(r)
		end := min(s.classes[r>>rowBits].stride, lines*lineBytes)
		for off := uintptr(0); off < end; off += lineBytes {
			prefetch(unsafe.Add(p, off))
		}
		return
	}
}
