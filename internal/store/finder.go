package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
)

// A Finder finds the rows of a store without the caller's lock, by any number
// of goroutines at any time: what it reads is written atomically. It also tells
// the processor what will be accessed soon. A row that nothing is cached of is
// three trips to memory away: the index, the address of the row's chunk, the
// row. Trips that are prefetched, by PrefetchIndex, Slot.Prefetch and Prefetch, overlap,
// also across locks, which ordinary reads do not.
//
// What it needs for rows of one length is together in a line of the processor's
// cache. There are hundreds of stores, and with more lines for each, finding a
// row would take longer than to copy it.
type Finder struct {
	n     atomic.Int64           // places of the index; never more than entries has
	index atomic.Pointer[uint32] // the first place
	first slab                   // of class 0
	rest  []slab                 // of the others
}

// slab is where the rows of a class are.
type slab struct {
	chunks atomic.Pointer[unsafe.Pointer] // the first of them; a row's chunk is there before its entry is
	stride uintptr
	perLog uint32
	// rowBits are those of a Ref. Only the slab of class 0 says it: so a Finder with
	// one class fills a line of the processor's cache.
	rowBits uint32
}

// Finder returns the store's finder.
func (s *Store) Finder() *Finder { return &s.finder }

func (f *Finder) slab(class uint32) *slab {
	if class == 0 {
		return &f.first
	}
	return &f.rest[class-1]
}

// set gives the finder a larger index. Who reads between the two finds little,
// but in memory that is there.
func (f *Finder) set(index []uint32) {
	f.index.Store(unsafe.SliceData(index))
	f.n.Store(int64(len(index)))
}

// at returns the address of a place in an index that begins at p.
func at(p *uint32, i int) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(p), 4*i)) }

// PrefetchIndex has the processor fetch the key's index entry.
func (f *Finder) PrefetchIndex(k godwit.Key) {
	n := int(f.n.Load())
	hint.Read(unsafe.Pointer(at(f.index.Load(), place(n, hash(k)))), 1)
}

// probes is how many places Look tries at the most: far more than an index
// asks for, unless it is just being replaced.
const probes = 100

// Look returns where the row of a key seems to be, nil if nowhere. It reads
// nothing of the row, which is the key's only if its header says so to a caller
// who knows that nobody changes it just now. It may fail to find a row while
// the index is being changed.
func (f *Finder) Look(k godwit.Key) *Header { return f.Probe(k).Row() }

// Probe is the first half of Look: it goes through the index and returns a
// slot, from which the second half leads to the row. Between the two lies a
// trip to memory that can be announced.
func (f *Finder) Probe(k godwit.Key) Slot {
	h := hash(k)
	tag := tagOf(h)
	n := int(f.n.Load())
	index := f.index.Load()
	i := place(n, h)
	for range probes {
		e := atomic.LoadUint32(at(index, i))
		if e == empty {
			break
		}
		if e&^refMask == tag {
			return f.slot(refOf(e))
		}
		i = next(n, i)
	}
	return Slot{}
}

func (f *Finder) slot(r Ref) Slot {
	rowBits := f.first.rowBits & 31
	s := f.slab(uint32(r) >> rowBits)
	row := uint32(r) & (1<<rowBits - 1)
	return Slot{
		(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(s.chunks.Load()), uintptr(row>>s.perLog)*unsafe.Sizeof(unsafe.Pointer(nil)))),
		uintptr(row&(1<<s.perLog-1)) * s.stride,
	}
}

// A Slot says where the address of a row is; the zero Slot, that there is none.
type Slot struct {
	chunk  *unsafe.Pointer // of these rows
	offset uintptr         // from there to the row
}

// Prefetch has the processor fetch the address.
func (s Slot) Prefetch() {
	if s.chunk != nil {
		hint.Read(unsafe.Pointer(s.chunk), 1)
	}
}

// Row returns what Look does.
func (s Slot) Row() *Header {
	if s.chunk == nil {
		return nil
	}
	return (*Header)(unsafe.Add(*s.chunk, s.offset))
}

// prefetchBytes is how much of a row Prefetch asks for. Of longer rows the processor
// fetches the rest by itself; for rows of 100 floats, 3 lines made a pull half
// as slow again as 7.
const prefetchBytes = 512

// Prefetch has the processor fetch the beginning of a row that Look found, if it
// did: the header and some floats.
func Prefetch(h *Header, floats int) {
	if h != nil {
		hint.Read(unsafe.Pointer(h), uintptr(min(headerBytes+4*floats, prefetchBytes)))
	}
}

// PrefetchToWrite is Prefetch of a row that will be written.
func PrefetchToWrite(h *Header, floats int) {
	if h != nil {
		hint.Write(unsafe.Pointer(h), uintptr(min(headerBytes+4*floats, prefetchBytes)))
	}
}

// FloatsAt returns the first n floats of the row with a header. n must not be
// more than the row has.
func FloatsAt(h *Header, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(h), headerBytes)), n)
}
