package store

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
)

// A KeySet is a set of keys that only grows. It takes a bit for each key of the
// pages in which there is one. Like a [Finder], it may be used by any number of
// goroutines at any time: a key that was added before Next was called is found.
type KeySet struct {
	keys  godwit.Key // all are below
	shift uint       // log2 of the keys of a page
	pages []atomic.Pointer[page]
}

type page []atomic.Uint64

const (
	maxPages = 1 << 16
	minPage  = 15 // log2 of the keys: 4 KiB
)

// NewKeySet returns an empty set with room for the keys 0 … keys-1.
func NewKeySet(keys uint64) *KeySet {
	s := &KeySet{keys: godwit.Key(keys), shift: minPage}
	for (keys-1)>>s.shift >= maxPages {
		s.shift++
	}
	s.pages = make([]atomic.Pointer[page], (keys-1)>>s.shift+1)
	return s
}

// Add adds a key.
func (s *KeySet) Add(k godwit.Key) { s.word(k).Or(1 << (k & 63)) }

// AddAll adds keys. Those that are close to one another should stand together.
func (s *KeySet) AddAll(keys []godwit.Key) {
	const coming = 16
	for i := 0; i < len(keys); {
		if j := i + coming; j < len(keys) {
			if p := s.pages[keys[j]>>s.shift].Load(); p != nil {
				hint.Write(unsafe.Pointer(s.word(keys[j])), 1)
			}
		}
		first, bits := keys[i]>>6, uint64(0)
		for ; i < len(keys) && keys[i]>>6 == first; i++ {
			bits |= 1 << (keys[i] & 63)
		}
		if w := s.word(first << 6); w.Load()&bits != bits {
			w.Or(bits)
		}
	}
}

// word returns where the key's bit is.
func (s *KeySet) word(k godwit.Key) *atomic.Uint64 {
	at := &s.pages[k>>s.shift]
	p := at.Load()
	if p == nil {
		fresh := make(page, 1<<(s.shift-6))
		if p = &fresh; !at.CompareAndSwap(nil, p) {
			p = at.Load()
		}
	}
	return &(*p)[k>>6&(1<<(s.shift-6)-1)]
}

// Next returns the first key of the set in first … end-1, if there is one.
func (s *KeySet) Next(first, end godwit.Key) (godwit.Key, bool) {
	end = min(end, s.keys)
	for k := first; k < end; {
		p := s.pages[k>>s.shift].Load()
		if p == nil {
			k = (k>>s.shift + 1) << s.shift
			continue
		}
		word := (*p)[k>>6&(1<<(s.shift-6)-1)].Load() >> (k & 63)
		if word != 0 {
			k += godwit.Key(bits.TrailingZeros64(word))
			return k, k < end
		}
		k = (k>>6 + 1) << 6
	}
	return 0, false
}
