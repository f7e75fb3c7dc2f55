//go:build amd64 && !purego && !race

package store

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/godwit-ps/godwit"
)

// fast tells whether the processor runs fastProbe.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

// fastFetch is FetchEach.
//
//go:noescape
func fastFetch(keys *godwit.Key, finders **Finder, n int)

// fastProbe finds the slot of each of n keys, by its store's finder: where the address of the row's
// chunk is, which it has the processor fetch, and the offset of the row. It looks at the rest
// of one line of each index, all places at once: how far a search goes nobody can guess,
// and a processor that guesses wrong loses more than the search takes.
//
// It writes pointers without telling the garbage collector, which may miss what is written
// to memory that it has seen already. It may, for what it writes it has just read from a Finder:
// the collector is told when that is replaced.
//
//go:noescape
func fastProbe(keys *godwit.Key, finders **Finder, n int, lines **unsafe.Pointer, offsets *uintptr)
