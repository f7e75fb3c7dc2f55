package hint

import (
	"bytes"
	"testing"
	"unsafe"
)

// Whatever address is hinted at, and however much: nothing is read that would
// fault, nothing is written.
func TestHintsChangeNothing(t *testing.T) {
	m := bytes.Repeat([]byte{7}, 1024)
	for first := range 70 {
		for n := 1; n < 600; n += 13 {
			p := unsafe.Pointer(&m[first])
			Read(p, uintptr(n))
			Write(p, uintptr(n))
			each := [...]unsafe.Pointer{p, nil, unsafe.Pointer(&m[0])}
			ReadEach(&each[0], len(each), uintptr(n))
		}
	}
	Read(nil, 64)
	Write(nil, 64)
	ReadEach(nil, 0, 64)
	Wait()
	if !bytes.Equal(m, bytes.Repeat([]byte{7}, 1024)) {
		t.Error("memory was written")
	}
}
