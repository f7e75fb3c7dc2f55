package arena

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

func TestMemoryIsZeroedAlignedAndNobodyElses(t *testing.T) {
	var a Arena
	var mu sync.Mutex
	var all [][]byte
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				b := a.Alloc(1 + (i*37+g)%5000)
				for j := range b {
					if b[j] != 0 {
						t.Errorf("byte %d of new memory is %d", j, b[j])
						return
					}
					b[j] = byte(g + 1)
				}
				if uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
					t.Errorf("memory at %p", &b[0])
				}
				mu.Lock()
				all = append(all, b)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	total := 0
	for _, b := range all {
		total += len(b)
		for j := range b {
			if b[j] != b[0] {
				t.Fatal("two pieces of memory overlap")
			}
		}
	}
	if a.Bytes() < total {
		t.Errorf("%d bytes were handed out, the arena says %d", total, a.Bytes())
	}
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	if a.Bytes() != 0 {
		t.Errorf("after Free, %d bytes are handed out", a.Bytes())
	}
}

func TestAPieceMayBeLargerThanARegionAndAnArenaUsedAgainAfterFree(t *testing.T) {
	var a Arena
	for range 2 {
		b := a.Alloc(region + 8)
		b[0], b[len(b)-1] = 1, 1
		if small := a.Alloc(3); len(small) != 3 || cap(small) != 3 {
			t.Errorf("3 bytes are %d with room for %d, want 3 and no room to grow into others'", len(small), cap(small))
		}
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFreedMemoryMayStillBeRead(t *testing.T) {
	var a Arena
	b := a.Alloc(region)
	b[0], b[region-1] = 1, 1
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	sum := 0
	for i := 0; i < region; i += 4096 {
		sum += int(b[i]) // must not fault
	}
	if sum > 2 {
		t.Errorf("freed memory holds %d", sum)
	}
	runtime.KeepAlive(&a)
}
