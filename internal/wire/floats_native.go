//go:build (386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm) && !purego

package wire

import "unsafe"

// canView reports whether floats can be used where they lie: the machine is
// little-endian, and the frame starts at a multiple of 4.
func canView(frame []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(frame)))%4 == 0
}

// floats returns the n floats at offset i, a multiple of 4, of the frame. There are n.
func (d *Decoder) floats(i, n int) []float32 {
	if !d.viewable {
		return d.copiedFloats(i, n)
	}
	b := d.frame[i : i+4*n]
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// putFloats writes vals, of which there is at least one, to b.
func putFloats(b []byte, vals []float32) {
	copy(b[:4*len(vals)], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), 4*len(vals)))
}
