package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"
)

// A Digest is a fingerprint of rows: of their tables' names, their numbers, values and states, bit by
// bit. It does not depend on the order of the rows, on the parts that hold them, or on the number of
// nodes. It is the sum, modulo 2^64 in each half, of the rows' 128-bit hashes (XXH3). It finds damage
// and differences, not forgeries.
type Digest [2]uint64

// Add adds what another digest covers.
func (d *Digest) Add(o Digest) { d[0] += o[0]; d[1] += o[1] }

// String returns 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d[1], d[0]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	var n [2]uint64
	if _, err := fmt.Sscanf(string(b), "%16x%16x", &n[1], &n[0]); err != nil || Digest(n).String() != string(b) {
		return fmt.Errorf("checkpoint: %q is no digest: want 32 hexadecimal digits in lower case", b)
	}
	*d = n
	return nil
}

// A digester computes digests of a table's rows. It belongs to one goroutine.
type digester struct {
	text []byte // the name of the table and a zero byte, and then the row
	name int
}

func newDigester(table string) *digester {
	text := append([]byte(table), 0)
	return &digester{text: text, name: len(text)}
}

// of returns the digest of a row, whose floats are little-endian.
func (d *digester) of(row uint64, floats []byte) Digest {
	d.text = binary.LittleEndian.AppendUint64(d.text[:d.name], row)
	d.text = append(d.text, floats...)
	h := xxh3.Hash128(d.text)
	return Digest{h.Lo, h.Hi}
}

// appendFloats appends floats as little-endian bytes.
func appendFloats(b []byte, x []float32) []byte {
	n := len(b)
	b = append(b, make([]byte, 4*len(x))...)
	dst := b[n:]
	for i, v := range x {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
	return b
}

// readFloats reads len(dst) floats.
func readFloats(dst []float32, b []byte) {
	b = b[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}
