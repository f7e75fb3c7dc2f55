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
// row. Trips that are prefetched, by PrefetchIndex, a [Group] and Prefetch, overlap,
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

// entry returns where the search for a key begins in the index.
func (f *Finder) entry(k godwit.Key) unsafe.Pointer {
	n := int(f.n.Load())
	return unsafe.Pointer(at(f.index.Load(), place(n, hash(k))))
}

// PrefetchIndex has the processor fetch the key's index entry.
func (f *Finder) PrefetchIndex(k godwit.Key) { hint.Read(f.entry(k), 1) }

// probes is how many places Look tries at the most: far more than an index
// asks for, unless it is just being replaced.
const probes = 100

// Look returns where the row of a key seems to be, nil if nowhere. It reads
// nothing of the row, which is the key's only if its header says so to a caller
// who knows that nobody changes it just now. It may fail to find a row while
// the index is being changed.
func (f *Finder) Look(k godwit.Key) *Header { return f.probe(k).row() }

// probe is the first half of Look: it goes through the index and returns a
// slot, from which the second half leads to the row. Between the two lies a
// trip to memory that can be announced.
func (f *Finder) probe(k godwit.Key) slot {
	if e := f.search(k); e != empty {
		return f.slot(refOf(e))
	}
	return slot{}
}

// search returns the entry that seems to be a key's, or empty.
func (f *Finder) search(k godwit.Key) uint32 {
	h := hash(k)
	tag := tagOf(h)
	n := int(f.n.Load())
	index := f.index.Load()
	begin := place(n, h)
	i := begin
	for range probes {
		e := atomic.LoadUint32(at(index, i))
		if e == empty || e&^refMask == tag {
			return e
		}
		i = next(n, begin, i)
	}
	return empty
}

// A Group is keys that are looked up together, each by the finder of its store. Its methods
// do what those of a Finder do for one key. One goroutine uses it at a time.
type Group struct {
	Finders [GroupKeys]*Finder         // of the keys; to be set before a method is called
	Rows    [GroupKeys]*Header         // what Look found
	chunks  [GroupKeys]*unsafe.Pointer // slots: see slot
	offsets [GroupKeys]uintptr
}

// GroupKeys is how many keys a group has at the most: so many that the time until the first
// row is here is little beside the rest, and few enough for their index to stay in
// the first cache until it is read.
const GroupKeys = 128

// PrefetchIndex has the processor fetch the index entry of each key.
func (g *Group) PrefetchIndex(keys []godwit.Key) {
	if len(keys) == 0 {
		return
	}
	if fast {
		fastFetch(&keys[0], &g.Finders[0], len(keys))
		return
	}
	for i, k := range keys {
		hint.Read(g.Finders[i%GroupKeys].entry(k), 1)
	}
}

// beyond is no offset: the search goes on in another line.
const beyond = 1

// Look finds where the row of each key seems to be.
func (g *Group) Look(keys []godwit.Key) {
	if len(keys) == 0 {
		return
	}
	g.probe(keys)
	for i, k := range keys {
		i %= GroupKeys
		switch chunk := g.chunks[i]; {
		case chunk != nil:
			g.Rows[i] = slot{chunk, g.offsets[i]}.row()
		case g.offsets[i] == beyond:
			g.Rows[i] = g.Finders[i].Look(k)
		default:
			g.Rows[i] = nil
		}
	}
}

// probe finds the slot of each key, and has the processor fetch the address there.
func (g *Group) probe(keys []godwit.Key) {
	if fast {
		fastProbe(&keys[0], &g.Finders[0], len(keys), &g.chunks[0], &g.offsets[0])
		return
	}
	for i, k := range keys {
		i %= GroupKeys
		s := g.Finders[i].probe(k)
		g.chunks[i], g.offsets[i] = s.chunk, s.offset
		if s.chunk != nil {
			hint.Read(unsafe.Pointer(s.chunk), 1)
		}
	}
}

// PrefetchRemove has the processor fetch what Remove of a key reads beside the key's row: the
// headers of the rows whose entries follow the key's in its line, up to a gap.
func (f *Finder) PrefetchRemove(k godwit.Key) {
	n := int(f.n.Load())
	index := f.index.Load()
	i := place(n, hash(k))
	for range linePlaces {
		e := atomic.LoadUint32(at(index, i))
		if e == empty {
			return
		}
		Prefetch(f.slot(refOf(e)).row(), 0)
		i = around(i)
	}
}

func (f *Finder) slot(r Ref) slot {
	rowBits := f.first.rowBits & 31
	s := f.slab(uint32(r) >> rowBits)
	row := uint32(r) & (1<<rowBits - 1)
	return slot{
		(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(s.chunks.Load()), uintptr(row>>s.perLog)*unsafe.Sizeof(unsafe.Pointer(nil)))),
		uintptr(row&(1<<s.perLog-1)) * s.stride,
	}
}

// A slot says where the address of a row is; the zero slot, that there is none.
type slot struct {
	chunk  *unsafe.Pointer // of these rows
	offset uintptr         // from there to the row
}

// row returns what Look does.
func (s slot) row() *Header {
	if s.chunk == nil {
		return nil
	}
	return (*Header)(unsafe.Add(*s.chunk, s.offset))
}

// prefetchBytes is how much of a row Prefetch asks for: most rows as a whole, since rules begin at a row's end, where the processor does not
// expect it. With 512, a pull and a push of rows of 129 floats took a sixth longer, and of 193 floats nearly half as long again.
const prefetchBytes = 2048

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

// PrefetchEach is Prefetch of each of some rows, also of rows that will be written: to ask for many lines as such brings them to the
// processor's first cache only, which they overflow.
func PrefetchEach(rows []*Header, floats int) {
	if len(rows) > 0 {
		hint.ReadEach((*unsafe.Pointer)(unsafe.Pointer(&rows[0])), len(rows), uintptr(min(headerBytes+4*floats, prefetchBytes)))
	}
}

// maxFloats is more than any row has. Slices of such an array need no multiplication to
// be checked.
const maxFloats = 1 << 40

// FloatsAt returns the first n floats of the row with a header. n must not be
// more than the row has.
func FloatsAt(h *Header, n int) []float32 {
	return (*[maxFloats]float32)(unsafe.Add(unsafe.Pointer(h), headerBytes))[:n:n]
}
