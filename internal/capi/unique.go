package capi

import (
	"math/bits"
	"sync"
)

// A finder finds equal keys. It keeps its memory.
type finder struct{ slots []int32 }

var finders = sync.Pool{New: func() any { return &finder{} }}

// maxKeys bounds the keys of a call: positions are 32 bits.
const maxKeys = 1 << 30

// Unique writes the keys, each once, in the order of their first occurrence, to unique, and to
// inverse where each stands there. It returns how many there are. Both slices are as long as keys.
func Unique(keys, unique, inverse []int64) (int, error) {
	if len(unique) < len(keys) || len(inverse) < len(keys) {
		return 0, errLength
	}
	if len(keys) > maxKeys {
		return 0, wrong("%d keys, want at most %d in a call", len(keys), maxKeys)
	}
	f := finders.Get().(*finder)
	defer finders.Put(f)
	f.clear(len(keys))
	shift, mask := 64-bits.Len(uint(len(f.slots)-1)), uint64(len(f.slots)-1)
	n := 0
	for i, k := range keys {
		s := uint64(k) * 0x9e3779b97f4a7c15 >> shift
		for {
			at := f.slots[s]
			if at == 0 {
				unique[n] = k
				inverse[i] = int64(n)
				n++
				f.slots[s] = int32(n)
				break
			}
			if unique[at-1] == k {
				inverse[i] = int64(at - 1)
				break
			}
			s = (s + 1) & mask
		}
	}
	return n, nil
}

// clear makes room for n keys.
func (f *finder) clear(n int) {
	size := 1 << bits.Len(uint(max(2*n, 8)-1))
	if cap(f.slots) < size {
		f.slots = make([]int32, size)
		return
	}
	f.slots = f.slots[:size]
	clear(f.slots)
}
