package store

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
)

// A KeySet is a set of keys that only grows. Its memory follows the keys that it
// has, not those that it could have: 10 to 40 bytes a key where keys are far apart,
// little more than a bit where they are dense. Like a [Finder], it may be used by
// any number of goroutines at any time: a key that was added before Next was called
// is found.
//
// It is a tree. The root divides the key space into as many parts as it has room
// for. A part begins as a list of its keys in the order in which they came. When
// the list is full, it is replaced by a longer one, a small part's by a bitmap, and
// that of a large part by a fork into 16 parts, and so on.
type KeySet struct {
	keys  godwit.Key // all are below
	shift uint       // log2 of the keys of a part of the root
	parts []part
	bytes atomic.Int64 // of what the parts lead to
}

// A part is nil while it has no key. A list that is full does not change, so who
// replaces it misses nothing; bitmaps and forks stay.
type part = atomic.Pointer[node]

// A node is one of a fork, a bitmap and a list.
type node struct {
	fork   *[fanout]part
	bitmap *[bitmapWords]atomic.Uint64
	list   []listEntry // those that are there come first
}

// listEntry is a place of a list: the key plus 1, or 0. It is written once.
type listEntry = atomic.Uint64

const (
	maxParts    = 1 << 15 // of the root
	bitmapLog   = 12      // log2 of the keys of a bitmap
	bitmapWords = 1 << (bitmapLog - 6)
	fanoutLog   = 4
	fanout      = 1 << fanoutLog
	minList     = 4
	maxList     = 64
)

// NewKeySet returns an empty set with room for the keys 0 … keys-1.
func NewKeySet(keys uint64) *KeySet {
	s := &KeySet{keys: godwit.Key(keys), shift: bitmapLog}
	for (keys-1)>>s.shift >= maxParts {
		s.shift += fanoutLog
	}
	s.parts = make([]part, (keys-1)>>s.shift+1)
	return s
}

// Add adds a key.
func (s *KeySet) Add(k godwit.Key) {
	if b := s.bitmap(k); b != nil {
		wordOf(b, k).Or(1 << (k & 63))
		return
	}
	s.insert(k)
}

// AddAll adds keys. Those that are close to one another should stand together.
func (s *KeySet) AddAll(keys []godwit.Key) {
	const ahead = 16
	for i := 0; i < len(keys); {
		if j := i + ahead; j < len(keys) {
			if b := s.bitmap(keys[j]); b != nil {
				hint.Write(unsafe.Pointer(wordOf(b, keys[j])), 1)
			}
		}
		b := s.bitmap(keys[i])
		if b == nil {
			s.insert(keys[i])
			i++
			continue
		}
		first, bits := keys[i]>>6, uint64(0)
		for ; i < len(keys) && keys[i]>>6 == first; i++ {
			bits |= 1 << (keys[i] & 63)
		}
		if w := wordOf(b, first<<6); w.Load()&bits != bits {
			w.Or(bits)
		}
	}
}

// leaf returns the list or bitmap that a key belongs to, nil if there is none.
func (s *KeySet) leaf(k godwit.Key) *node {
	x := s.parts[k>>s.shift].Load()
	for shift := s.shift; x != nil && x.fork != nil; {
		shift -= fanoutLog
		x = x.fork[k>>shift%fanout].Load()
	}
	return x
}

// bitmap returns the bitmap that a key belongs to, nil if there is none.
func (s *KeySet) bitmap(k godwit.Key) *[bitmapWords]atomic.Uint64 {
	if x := s.leaf(k); x != nil {
		return x.bitmap
	}
	return nil
}

// wordOf returns where a key's bit is.
func wordOf(b *[bitmapWords]atomic.Uint64, k godwit.Key) *atomic.Uint64 {
	return &b[k>>6%bitmapWords]
}

// insert adds a key that had no bitmap.
func (s *KeySet) insert(k godwit.Key) {
	at, shift := &s.parts[k>>s.shift], s.shift
	for {
		x := at.Load()
		switch {
		case x == nil:
			s.replace(at, nil, &node{list: make([]listEntry, minList)})
		case x.fork != nil:
			shift -= fanoutLog
			at = &x.fork[k>>shift%fanout]
		case x.bitmap != nil: // since a moment ago
			wordOf(x.bitmap, k).Or(1 << (k & 63))
			return
		case x.addToList(k):
			return
		case len(x.list) < maxList:
			s.replace(at, x, &node{list: grown(x.list, 2*len(x.list))})
		case shift == bitmapLog:
			s.replace(at, x, newBitmap(x.list))
		default:
			s.replace(at, x, newFork(x.list, shift-fanoutLog))
		}
	}
}

// addToList adds a key to a list, if it is not there, and reports false if that is full.
func (x *node) addToList(k godwit.Key) bool {
	for i := range x.list {
		l := &x.list[i]
		if l.Load() == 0 && l.CompareAndSwap(0, uint64(k)+1) || l.Load() == uint64(k)+1 {
			return true
		}
	}
	return false
}

// replace replaces what a part was, if nobody else has.
func (s *KeySet) replace(at *part, was, by *node) {
	more := by.bytes() - was.bytes()
	if at.CompareAndSwap(was, by) {
		s.bytes.Add(more)
	}
}

// grown returns a list of some room with the keys of a full one.
func grown(full []listEntry, room int) []listEntry {
	list := make([]listEntry, room)
	for i := range full {
		list[i].Store(full[i].Load())
	}
	return list
}

// newBitmap makes the bitmap of the keys of a full list.
func newBitmap(full []listEntry) *node {
	x := &node{bitmap: new([bitmapWords]atomic.Uint64)}
	for i := range full {
		k := godwit.Key(full[i].Load() - 1)
		wordOf(x.bitmap, k).Or(1 << (k & 63))
	}
	return x
}

// newFork divides the keys of a full list into parts of 1<<shift keys.
func newFork(full []listEntry, shift uint) *node {
	var n [fanout]int
	for i := range full {
		n[(full[i].Load()-1)>>shift%fanout]++
	}
	x := &node{fork: new([fanout]part)}
	for i, n := range n {
		if n > 0 {
			x.fork[i].Store(&node{list: make([]listEntry, max(minList, 1<<bits.Len(uint(n-1))))})
		}
	}
	for i := range full {
		k := godwit.Key(full[i].Load() - 1)
		x.fork[k>>shift%fanout].Load().addToList(k)
	}
	return x
}

// bytes returns the memory that a node takes, without what it leads to if that is
// not new.
func (x *node) bytes() int64 {
	if x == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(node{})) + int64(len(x.list))*int64(unsafe.Sizeof(listEntry{}))
	if x.bitmap != nil {
		n += int64(unsafe.Sizeof(*x.bitmap))
	}
	if x.fork != nil {
		n += int64(unsafe.Sizeof(*x.fork))
		for i := range x.fork {
			n += x.fork[i].Load().bytes()
		}
	}
	return n
}

// Bytes returns the memory that the set takes.
func (s *KeySet) Bytes() int {
	return int(unsafe.Sizeof(*s)) + len(s.parts)*int(unsafe.Sizeof(part{})) + int(s.bytes.Load())
}

// Next returns the first key of the set in first … end-1, if there is one. It looks
// at no more than the rest of the root and what leads to one list or bitmap; so who
// takes one key after the other looks at the root once.
func (s *KeySet) Next(first, end godwit.Key) (godwit.Key, bool) {
	end = min(end, s.keys)
	if first < end {
		if b := s.bitmap(first); b != nil { // as mostly; the loop would find it, too
			if word := wordOf(b, first).Load() >> (first & 63); word != 0 {
				k := first + godwit.Key(bits.TrailingZeros64(word))
				return k, k < end
			}
		}
	}
	for first < end {
		if x := s.parts[first>>s.shift].Load(); x != nil {
			if k, ok := x.next(first, s.shift); ok {
				return k, k < end
			}
		}
		first = (first>>s.shift + 1) << s.shift
	}
	return 0, false
}

// next returns the first key from first on of a node that has 1<<shift keys' part.
func (x *node) next(first godwit.Key, shift uint) (least godwit.Key, ok bool) {
	switch {
	case x.fork != nil:
		shift -= fanoutLog
		for i := first >> shift % fanout; i < fanout; i++ {
			if y := x.fork[i].Load(); y != nil {
				if k, ok := y.next(first, shift); ok {
					return k, true
				}
			}
			first = (first>>shift + 1) << shift
		}
	case x.bitmap != nil:
		for i := first >> 6 % bitmapWords; i < bitmapWords; i++ {
			if word := x.bitmap[i].Load() >> (first & 63); word != 0 {
				return first + godwit.Key(bits.TrailingZeros64(word)), true
			}
			first = (first>>6 + 1) << 6
		}
	default:
		for i := range x.list {
			l := x.list[i].Load()
			if l == 0 {
				break
			}
			if k := godwit.Key(l - 1); k >= first && (!ok || k < least) {
				least, ok = k, true
			}
		}
	}
	return least, ok
}

// Len counts the keys of the set.
func (s *KeySet) Len() (n int) { return count(s.parts) }

func count(parts []part) (n int) {
	for i := range parts {
		x := parts[i].Load()
		switch {
		case x == nil:
		case x.fork != nil:
			n += count(x.fork[:])
		case x.bitmap != nil:
			for j := range x.bitmap {
				n += bits.OnesCount64(x.bitmap[j].Load())
			}
		default:
			for j := range x.list {
				if x.list[j].Load() == 0 {
					break
				}
				n++
			}
		}
	}
	return n
}
