package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
)

// A row that is not in the processor's cache costs two trips to memory, one to
// the index and one to the row. Callers that know which keys come next have
// both begun early: first AheadIndex for some keys, then AheadRow for the same
// keys, then the access itself. The trips then overlap, also across locks,
// which ordinary reads do not.

// ahead is how much of a row is fetched. Of longer rows the processor fetches
// the rest by itself; for rows of 100 floats, 3 lines made a pull half as slow
// again as 7.
const ahead = 8 * lineBytes

const lineBytes = 64

// AheadIndex has the processor fetch the key's index entry. It may be called
// at any time.
func (s *Store) AheadIndex(k godwit.Key) {
	index := *s.index.Load()
	prefetch(unsafe.Pointer(&index[place(index, hash(k))]), 1)
}

// AheadRow is Look, and has the processor fetch the beginning of the row. It
// may be called at any time.
func (s *Store) AheadRow(k godwit.Key) *Header {
	h, bytes := s.look(k)
	if h != nil {
		prefetch(unsafe.Pointer(h), min(bytes, ahead))
	}
	return h
}

// Look returns where the row of a key seems to be, nil if nowhere. It may be
// called at any time, and reads nothing of the row. The row is the key's only
// if its header says so to a caller who knows that nobody changes it just now.
func (s *Store) Look(k godwit.Key) *Header {
	h, _ := s.look(k)
	return h
}

func (s *Store) look(k godwit.Key) (h *Header, bytes uintptr) {
	x := hash(k)
	tag := tagOf(x)
	index := *s.index.Load()
	for i := place(index, x); ; i = next(index, i) {
		e := atomic.LoadUint32(&index[i])
		if e == empty {
			return nil, 0
		}
		if e&^refMask == tag {
			c := &s.classes[e&refMask>>rowBits]
			row := e & rowMask
			chunk := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(c.first.Load()), uintptr(row>>c.perLog)*unsafe.Sizeof(unsafe.Pointer(nil))))
			return (*Header)(unsafe.Add(chunk, uintptr(row&(1<<c.perLog-1))*c.stride)), c.stride
		}
	}
}

// FloatsAt returns the first n floats of the row with a header. n must not be
// more than the row has.
func FloatsAt(h *Header, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(h), headerBytes)), n)
}
