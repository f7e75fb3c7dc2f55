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
//
// It may keep a region in reserve. When the system has no more memory, that is
// handed out, and Short is told: there is time to come to an end.
type Arena struct {
	// Short, if set, is told once that only the reserve is left, how many bytes were
	// handed out, and what the system said. It is called within Alloc and must use
	// neither the arena nor wait for anything.
	Short func(used int, err error)

	more    func(bytes int) ([]byte, error) // takes memory from the system; nil: take
	reserve []byte                          // nil: it was handed out, or there was none
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

// Reserve takes a region from the system and keeps it until there is no other: with room for a piece of so many bytes beside, the largest
// that will be asked for, if the system gives that, too.
func (a *Arena) Reserve(piece int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.system(region + whole(piece, huge))
	if err != nil {
		b, err = a.system(region)
	}
	if err != nil {
		return lacks(region, err)
	}
	a.reserve = b
	return nil
}

func lacks(size int, err error) error {
	return fmt.Errorf("the system has no %d MiB more for parameter values: %w", size>>20, err)
}

// Alloc returns n zeroed bytes aligned to 64. It panics if the system has no
// more memory to give and the reserve is used up, as the Go heap would.
func (a *Arena) Alloc(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := whole(n, line)
	if size > len(a.rest) {
		a.rest = a.take(max(region, whole(size, huge)))
	}
	b := a.rest[:n:n]
	a.rest = a.rest[size:]
	a.used += size
	return b
}

// whole rounds a number of bytes up to a multiple of a power of 2.
func whole(n, of int) int { return (n + of - 1) &^ (of - 1) }

// take gets memory from the system, or the reserve.
func (a *Arena) take(size int) []byte {
	b, err := a.system(size)
	if err == nil {
		return b
	}
	err = lacks(size, err)
	if len(a.reserve) < size {
		panic(fmt.Sprintf("arena: %v", err))
	}
	b, a.reserve = a.reserve, nil
	if a.Short != nil {
		a.Short(a.used, err)
	}
	return b
}

func (a *Arena) system(size int) ([]byte, error) {
	more := a.more
	if more == nil {
		more = take
	}
	b, err := more(size)
	if err != nil {
		return nil, err
	}
	m := &mapped{b}
	runtime.AddCleanup(m, unmap, b)
	a.regions = append(a.regions, m)
	return b, nil
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
	a.regions, a.rest, a.reserve, a.used = nil, nil, nil, 0
	return first
}
