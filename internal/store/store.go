// Package store holds rows: an index from keys to fixed-length rows in slabs.
//
// A [Store] serves one shard. It is a plain data structure without locks: the
// caller makes sure that one goroutine uses it at a time. Only its [Finder] may be
// used at any time, also while another goroutine changes the store. Rows live in memory that the caller's [Alloc] hands
// out (off the Go heap in a node, see internal/store/arena), so the garbage collector
// never looks at them.
//
// A row is a header followed by its floats:
//
//	byte  0        8          16       20      24
//	      | key    | version  | epoch  | meta  | float32 × row length | pad to 8
//
// The index is an open-addressing table of one uint32 an entry, at most 80 %
// full, so that a key costs 5 to 6 bytes there when all keys are here that were
// expected ([Store.Expect]) or more:
//
//	bit 31     25 24                           0
//	    |  tag   |  class |  row               |
//
// The class is the row length's number, in as few bits as the number of row lengths
// allows; the row is its place in the class's slabs,
// counted from 1, and the tag seven more bits of the key's hash, so that a probe of
// another key's entry rarely has to look at that key's row. 0 is no entry: an index
// in new memory is empty.
//
// An index is lines of the processor's cache. A search begins at a place that the key's hash
// says, goes round the line from there, and into the next line, at the same place of it, only if
// all places of the line are taken. With a search that left a line at its end, an eighth of the
// keys of a full index were found in the next one, which is another trip to memory; now
// 3 % are.
//
// A row's memory remains a row of the same class for good, in use or not. So
// who looked for a row without the caller's lock may see another key's by the
// time of the access, or none, but never something else.
package store

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
)

// A Ref names a row of a store until the row is removed.
type Ref uint32

const (
	tagShift = 25 // bits of class and row together
	refMask  = 1<<tagShift - 1
	empty    = uint32(0)

	// MaxClasses bounds the different row lengths of a model.
	MaxClasses = 1 << 5

	chunkBytes = 4 << 10 // what a slab chunk aims at: small, because there are thousands of shards
	maxChunk   = 128     // rows of a chunk at the most
)

// A Header is what a store keeps of a row beside its floats. Its owner (the
// protocol) gives Meta its meaning.
type Header struct {
	Key     godwit.Key     // whose row it is; of a free or spare row it means nothing
	Version godwit.Version // how many changes were applied to it; see godwit.Version
	Epoch   godwit.Epoch   // how often the ownership of the key has changed hands
	Meta    uint32         // the protocol's state of the key; 0 for a new row
}

// noRow is no row: it is beyond those that fit.
const noRow = refMask

const headerBytes = int(unsafe.Sizeof(Header{}))

// Alloc returns zeroed memory of the given number of bytes, aligned to 8. It
// is never given back.
type Alloc func(bytes int) []byte

// HeapAlloc allocates on the Go heap: for tests and simulation.
func HeapAlloc(n int) []byte {
	w := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n)
}

// A Store maps keys to rows.
type Store struct {
	// Full, if set, is told once for each row length that nearly as many rows were made of it
	// as fit (MaxRows), and how many floats these have. It is called within Insert, Ensure or Spare
	// and must not use the store. A 64th more may be made after that: there is time to come to an end.
	Full func(rows, floats int)

	finder  Finder
	index   []uint32
	classes []class
	rowBits uint // of a Ref: the row; the class is above
	n       int  // indexed rows
	expects int  // indexed rows when all keys are here that are expected
	alloc   Alloc
}

// class holds the rows of one length.
type class struct {
	stride uintptr // bytes from row to row
	perLog uint    // log2 of the rows of a chunk
	rowLen int
	chunks []unsafe.Pointer
	rows   uint32 // rows ever taken from chunks
	free   uint32 // head of the list of free rows, linked through Header.Version; noRow is none
	nfree  int
}

// New returns an empty store for rows of the given lengths; the position of a
// length is its class.
func New(rowLens []int, alloc Alloc) (*Store, error) {
	if len(rowLens) > MaxClasses {
		return nil, fmt.Errorf("store: %d different row lengths, at most %d are supported", len(rowLens), MaxClasses)
	}
	s := &Store{alloc: alloc, classes: make([]class, len(rowLens)), rowBits: tagShift - uint(bits.Len(uint(max(len(rowLens)-1, 0))))}
	s.finder.first.rowBits = uint32(s.rowBits)
	s.finder.rest = make([]slab, max(len(rowLens)-1, 0))
	for i, l := range rowLens {
		stride := (headerBytes + 4*l + 7) &^ 7
		per := 1
		for per < maxChunk && 2*per*stride <= chunkBytes {
			per *= 2
		}
		c := &s.classes[i]
		c.rowLen, c.stride, c.perLog, c.free = l, uintptr(stride), uint(bits.TrailingZeros(uint(per))), noRow
		f := s.finder.slab(uint32(i))
		f.stride, f.perLog = c.stride, uint32(c.perLog)
	}
	s.resize(linePlaces)
	return s, nil
}

// lastRows is which part of the rows of a length may be made after Full was told.
const lastRows = 64

// MaxRows returns how many rows of one length fit: 16 to 32 million where all rows
// have one length or two, 1 million where they have [MaxClasses].
func (s *Store) MaxRows() int { return 1<<s.rowBits - 1 }

// ref makes the name of a row of a class, and split takes it apart.
func (s *Store) ref(class int, row uint32) Ref { return Ref(uint32(class)<<s.rowBits | row) }

func (s *Store) split(r Ref) (class, row uint32) {
	return uint32(r) >> s.rowBits, uint32(r) & (1<<s.rowBits - 1)
}

// Expect tells the store how many keys it will hold if all come that are
// expected; more may. Once an eighth of them is here, the index grows for all at
// once. Grown step by step, every key would be entered five times, and the last
// step would keep whoever inserts waiting for eight times as long.
func (s *Store) Expect(keys int) { s.expects = keys }

// Len returns the number of keys.
func (s *Store) Len() int { return s.n }

// hash spreads the keys of a shard, which are equal in their low bits.
func hash(k godwit.Key) uint64 {
	h := uint64(k) * hashMul
	return h ^ h>>29
}

const hashMul = 0x9e3779b97f4a7c15

func tagOf(h uint64) uint32 { return uint32(h&0x7f) << tagShift }

// refOf returns the row of an entry, and entryOf the entry of a row.
func refOf(e uint32) Ref { return Ref(e&refMask) - 1 }

func entryOf(tag uint32, r Ref) uint32 { return tag | (uint32(r) + 1) }

// place returns where in an index of n places the search for a hash begins.
func place(n int, h uint64) int {
	i, _ := bits.Mul64(h, uint64(n))
	return int(i)
}

// next returns where the search that began at a place goes on after i.
func next(n, begin, i int) int {
	if i = around(i); i%linePlaces != begin%linePlaces {
		return i
	}
	return lineAfter(n, i)
}

// around returns the place after i in its line.
func around(i int) int { return i&^(linePlaces-1) | (i+1)%linePlaces }

// lineAfter returns the place in the next line.
func lineAfter(n, i int) int {
	if i += linePlaces; i >= n {
		return i - n
	}
	return i
}

// Find returns the row of a key, if it is here.
func (s *Store) Find(k godwit.Key) (Ref, bool) {
	h := hash(k)
	tag := tagOf(h)
	begin := place(len(s.index), h)
	for i := begin; ; i = next(len(s.index), begin, i) {
		e := s.index[i]
		if e&^refMask == tag && e != empty {
			if r := refOf(e); s.Header(r).Key == k {
				return r, true
			}
		}
		if e == empty {
			return 0, false
		}
	}
}

// Ensure is Find, and Insert if the key is not here.
func (s *Store) Ensure(k godwit.Key, class int) (r Ref, made bool) {
	h := hash(k)
	tag := tagOf(h)
	begin := place(len(s.index), h)
	i := begin
	for ; s.index[i] != empty; i = next(len(s.index), begin, i) {
		if e := s.index[i]; e&^refMask == tag {
			if r := refOf(e); s.Header(r).Key == k {
				return r, false
			}
		}
	}
	if s.full() {
		return s.Insert(k, class), true
	}
	r = s.Spare(class)
	s.Header(r).Key = k
	atomic.StoreUint32(&s.index[i], entryOf(tag, r))
	s.n++
	return r, true
}

// full reports whether the index must grow before a key can be entered.
func (s *Store) full() bool { return 5*(s.n+1) > 4*len(s.index) }

// Insert makes a row of a class for a key that is not here. The header's key
// is set and its other fields are zero; the floats are arbitrary.
func (s *Store) Insert(k godwit.Key, class int) Ref {
	if s.full() {
		s.resize(s.grown())
	}
	r := s.Spare(class)
	s.Header(r).Key = k
	enter(s.index, k, r)
	s.n++
	return r
}

// enter writes an entry for a key that has none.
func enter(index []uint32, k godwit.Key, r Ref) {
	i, e := vacant(index, k, r)
	atomic.StoreUint32(&index[i], e)
}

// vacant returns where the entry of a key that has none goes, and the entry.
func vacant(index []uint32, k godwit.Key, r Ref) (i int, entry uint32) {
	h := hash(k)
	begin := place(len(index), h)
	for i = begin; index[i] != empty; i = next(len(index), begin, i) {
	}
	return i, entryOf(tagOf(h), r)
}

// all is how many places the index has for all keys that are expected.
func (s *Store) all() int { return placesFor(s.expects) }

func placesFor(keys int) int { return wholeLines(keys + keys/4 + 1) }

// IndexBytes returns the bytes of the index that a store asks its Alloc for in one piece, if so many keys are expected; 0: it will never have an
// eighth of them, as there is no room for so many rows.
func IndexBytes(keys int) int {
	if keys > growAt<<tagShift {
		return 0
	}
	return 4 * placesFor(keys)
}

// linePlaces is how many places of an index make a line of the processor's cache. An index has
// whole lines.
const linePlaces = 16

func wholeLines(places int) int { return (places + linePlaces - 1) &^ (linePlaces - 1) }

// growAt is which part of the keys that are expected is here when the index grows for all.
const growAt = 8

// grown returns how many places the index has after it was full.
func (s *Store) grown() int {
	n := len(s.index)
	switch all := s.all(); {
	case n >= all:
		return wholeLines(n + n/4 + 1)
	case growAt*s.n >= s.expects:
		return all
	default:
		return min(4*n, all)
	}
}

func (s *Store) resize(n int) {
	index := s.places(n)
	// The rows of neighbouring entries lie anywhere; fetched one after the other,
	// they would take most of the time of filling a store.
	const ahead = 16
	for i, e := range s.index {
		if j := i + ahead; j < len(s.index) && s.index[j] != empty {
			hint.Read(s.at(refOf(s.index[j])), 1)
		}
		if e != empty {
			r := refOf(e)
			i, e := vacant(index, s.Header(r).Key, r)
			index[i] = e
		}
	}
	s.index = index
	s.finder.set(index)
}

// places makes an empty index. The one for all keys that are expected lies with the
// rows: where these have large pages, it does.
func (s *Store) places(n int) []uint32 {
	if n == s.all() {
		return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s.alloc(4*n)))), n)
	}
	return make([]uint32, n)
}

// Remove takes a key out and frees its row.
func (s *Store) Remove(k godwit.Key) {
	r, ok := s.Find(k)
	if !ok {
		panic(fmt.Sprintf("store: remove of key %d, which is not here", k))
	}
	begin := place(len(s.index), hash(k))
	i := begin
	for refOf(s.index[i]) != r {
		i = next(len(s.index), begin, i)
	}
	s.closeGap(i)
	s.n--
	s.Free(r)
}

// closeGap empties a place of the index. Searches that came by it would end there, so an entry that one of them
// leads to moves up, and leaves a gap. Who looks for that entry meanwhile finds it at one of the two.
func (s *Store) closeGap(gap int) {
	for {
		full := s.fullLine(gap)
		gap = s.moveUp(gap)
		if !full {
			break
		}
		from := s.beyond(gap)
		if from < 0 {
			break
		}
		atomic.StoreUint32(&s.index[gap], s.index[from])
		gap = from
	}
	atomic.StoreUint32(&s.index[gap], empty)
}

// moveUp moves entries of a gap's line until no search in the line comes by the gap, and returns where the gap is then. To go round
// once is enough: no two searches come by each other's entries, as the later of the two found the other's place taken, and moves only shorten
// searches.
func (s *Store) moveUp(gap int) int {
	for i, seen := around(gap), 1; seen < linePlaces && s.index[i] != empty; i, seen = around(i), seen+1 {
		if own := s.own(i); inLine(own, gap) < inLine(own, i) {
			atomic.StoreUint32(&s.index[gap], s.index[i])
			gap = i
		}
	}
	return gap
}

// beyond returns the place of an entry in another line whose search came through the full line of a gap; -1: there is none.
func (s *Store) beyond(gap int) int {
	n := len(s.index)
	for line, lines := lineAfter(n, gap&^(linePlaces-1)), 1; lines < n/linePlaces; line, lines = lineAfter(n, line), lines+1 {
		for i := line; i < line+linePlaces; i++ {
			if s.index[i] == empty {
				continue
			}
			if home := s.own(i) &^ (linePlaces - 1); (line-home+n)%n >= lines*linePlaces {
				return i
			}
		}
		if !s.fullLine(line) {
			break
		}
	}
	return -1
}

// fullLine reports whether all places of a place's line are taken.
func (s *Store) fullLine(i int) bool {
	first := i &^ (linePlaces - 1)
	return !slices.Contains(s.index[first:first+linePlaces], empty)
}

// own returns where the search for the key of an entry begins.
func (s *Store) own(i int) int { return place(len(s.index), hash(s.Header(refOf(s.index[i])).Key)) }

// inLine returns how many steps lead in a line from place i to place j.
func inLine(i, j int) int { return (j - i) & (linePlaces - 1) }

// Spare takes a row that no key leads to, for a second copy of a row. The
// floats are arbitrary.
func (s *Store) Spare(class int) Ref {
	c := &s.classes[class]
	row := c.free
	if row != noRow {
		c.free = uint32(s.Header(s.ref(class, row)).Version)
		if c.nfree--; c.nfree > 0 { // as below
			hint.Write(s.at(s.ref(class, c.free)), min(c.stride, prefetchBytes))
		}
	} else {
		if int(c.rows) >= s.MaxRows() {
			panic(fmt.Sprintf("store: more than %d rows of %d floats in one shard", s.MaxRows(), c.rowLen))
		}
		if row = c.rows; row>>c.perLog == uint32(len(c.chunks)) {
			c.chunks = append(c.chunks, unsafe.Pointer(unsafe.SliceData(s.alloc(int(c.stride)<<c.perLog))))
			s.finder.slab(uint32(class)).chunks.Store(unsafe.SliceData(c.chunks))
		}
		if c.rows++; int(c.rows) == s.MaxRows()-s.MaxRows()/lastRows && s.Full != nil {
			s.Full(int(c.rows), c.rowLen)
		}
		if next := c.rows; next>>c.perLog == row>>c.perLog {
			// It will be written when the caller has come by many other stores.
			hint.Write(s.at(s.ref(class, next)), min(c.stride, prefetchBytes))
		}
	}
	r := s.ref(class, row)
	*s.Header(r) = Header{}
	return r
}

// Free gives back a row that Spare returned. Its Meta becomes zero.
func (s *Store) Free(r Ref) {
	class, row := s.split(r)
	c := &s.classes[class]
	*s.Header(r) = Header{Version: godwit.Version(c.free)}
	c.free = row
	c.nfree++
}

// ClassOf returns the class of a row.
func (s *Store) ClassOf(r Ref) int { return int(uint32(r) >> s.rowBits) }

// Header returns a row's header. The pointer is good until the row is freed.
func (s *Store) Header(r Ref) *Header { return (*Header)(s.at(r)) }

// Floats returns a row's floats. The slice is good until the row is freed.
func (s *Store) Floats(r Ref) []float32 {
	p := s.at(r)
	return unsafe.Slice((*float32)(unsafe.Add(p, headerBytes)), s.classes[s.ClassOf(r)].rowLen)
}

func (s *Store) at(r Ref) unsafe.Pointer {
	class, row := s.split(r)
	c := &s.classes[class]
	return unsafe.Add(c.chunks[row>>c.perLog], uintptr(row&(1<<c.perLog-1))*c.stride)
}

// Each calls f for every key's row, in no particular order. f must not insert
// or remove.
func (s *Store) Each(f func(Ref)) {
	for _, e := range s.index {
		if e != empty {
			f(refOf(e))
		}
	}
}

// Bytes returns the memory that the store takes: slabs and index.
func (s *Store) Bytes() int {
	n := 4 * len(s.index)
	for i := range s.classes {
		c := &s.classes[i]
		n += len(c.chunks)*int(c.stride)<<c.perLog + 8*cap(c.chunks)
	}
	return n
}
