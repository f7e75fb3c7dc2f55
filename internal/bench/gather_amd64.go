package bench

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/godwit-ps/godwit"
)

//go:noescape
func gather(dst, slab *float32, keys *godwit.Key, n, dim int)

// collect copies the rows of keys as a C compiler's loop would, where the
// processor can.
func collect(dst, slab []float32, keys []godwit.Key, dim int) {
	if !cpu.X86.HasAVX {
		copyRows(dst, slab, keys, dim)
		return
	}
	gather(unsafe.SliceData(dst), unsafe.SliceData(slab), unsafe.SliceData(keys), len(keys), dim)
}
