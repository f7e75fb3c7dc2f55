// Package arena hands out memory off the Go heap, so that tens of gigabytes of
// values cost the garbage collector nothing.
package arena

import (
	"fmt"
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
	regions [][]byte
	used    int
}

// Alloc returns n zeroed bytes aligned to 8. It panics if the system has no
// more memory to give, as the Go heap would.
func (a *Arena) Alloc(n int) []byte {
	n = (n + 7) &^ 7
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > len(a.rest) {
		size := max(region, (n+huge-1)/huge*huge)
		m, err := take(size)
		if err != nil {
			panic(fmt.Sprintf("arena: the system has no %d MiB more for parameter values: %v", size>>20, err))
		}
		a.regions = append(a.regions, m)
		a.rest = m
	}
	b := a.rest[:n:n]
	a.rest = a.rest[n:]
	a.used += n
	return b
}

// Bytes returns how many bytes were handed out.
func (a *Arena) Bytes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Free gives everything back to the system. Nothing that was handed out may be
// used any more.
func (a *Arena) Free() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first error
	for _, m := range a.regions {
		if err := give(m); err != nil && first == nil {
			first = fmt.Errorf("arena: %w", err)
		}
	}
	a.regions, a.rest, a.used = nil, nil, 0
	return first
}
