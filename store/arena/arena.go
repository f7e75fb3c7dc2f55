// Package arena hands out memory off the Go heap, so that tens of gigabytes of
// values cost the garbage collector nothing.
package arena

import (
	"fmt"
	"runtime"
	"sync"
)

const (
	region = 64 << 20 // address space taken from the system at a time; pages are backed when touched
	huge   = 2 << 20  // where the kernel may use huge pages
)

// An Arena is memory that grows and is given back as a whole. It may be used
// by any number of goroutines.
type Arena struct {
	mu      sync.Mutex
	rest    []byte
	regions []*mapped
	freed   []*mapped
	used    int
}

// mapped is memory of the system's. Its addresses are valid for as long as the
// arena can be reached.
type mapped struct{ bytes []byte }

// line is what pieces are aligned to: rows that fit in a line of the
// processor's cache shall not lie across two.
const line = 64

// Alloc returns n zeroed bytes aligned to 64. It panics if the system has no
// more memory to give, as the Go heap would.
func (a *Arena) Alloc(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	whole := (n + line - 1) &^ (line - 1)
	if whole > len(a.rest) {
		size := max(region, (whole+huge-1)/huge*huge)
		b, err := take(size)
		if err != nil {
			panic(fmt.Sprintf("arena: the system has no %d MiB more for parameter values: %v", size>>20, err))
		}
		m := &mapped{b}
		runtime.AddCleanup(m, unmap, b)
		a.regions = append(a.regions, m)
		a.rest = b
	}
	b := a.rest[:n:n]
	a.rest = a.rest[whole:]
	a.used += whole
	return b
}

// Bytes returns how many bytes were handed out.
func (a *Arena) Bytes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Free gives everything back to the system. Nothing that was handed out may be
// written any more. Who still reads it finds anything, but no fault, for as
// long as the arena can be reached.
func (a *Arena) Free() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first error
	for _, m := range a.regions {
		if err := give(m.bytes); err != nil && first == nil {
			first = fmt.Errorf("arena: %w", err)
		}
	}
	a.freed = append(a.freed, a.regions...)
	a.regions, a.rest, a.used = nil, nil, 0
	return first
}
