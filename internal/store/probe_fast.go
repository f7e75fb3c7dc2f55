//go:build amd64 && !purego && !race

package store

import (
	"golang.org/x/sys/cpu"

	"github.com/godwit-ps/godwit"
)

// fast tells whether the processor runs fastProbe.
var fast = cpu.X86.HasAVX2

// fastFetch is FetchEach.
//
//go:noescape
func fastFetch(keys *godwit.Key, finders **Finder, n int)

// fastProbe finds an entry for each of n keys, by its store's finder. It looks at the rest of
// one line of each index, all places at once: how far a search goes nobody can guess, and
// a processor that guesses wrong loses more than the search takes.
//
//go:noescape
func fastProbe(keys *godwit.Key, finders **Finder, n int, entries *uint32)
