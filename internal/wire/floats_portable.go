//go:build !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm) || purego

package wire

import (
	"encoding/binary"
	"math"
)

func canView([]byte) bool { return false }

func (d *Decoder) floats(i, n int) []float32 { return d.copiedFloats(i, n) }

func putFloats(b []byte, vals []float32) {
	b = b[:4*len(vals)]
	for i, v := range vals {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
}
