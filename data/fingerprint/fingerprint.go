// Package fingerprint hashes data sets, so that nodes can tell that they loaded the
// same and an export can say what it was trained on. It is fast, and not
// cryptographic: two data sets that differ have the same
// fingerprint with a probability of 2⁻⁶⁴.
package fingerprint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"
)

// A Hash computes a fingerprint of what is added to it. The zero Hash is ready for use.
// It belongs to one goroutine.
type Hash struct{ h xxh3.Hasher }

// Write adds bytes. It never fails.
func (h *Hash) Write(b []byte) (int, error) { return h.h.Write(b) }

// Number adds a whole number.
func (h *Hash) Number(x int) { h.word(uint64(x)) }

// Float adds a float, bit by bit.
func (h *Hash) Float(x float32) { h.half(math.Float32bits(x)) }

// ID adds a number of 32 bits.
func (h *Hash) ID(x uint32) { h.half(x) }

// Text adds a string, and where it ends.
func (h *Hash) Text(s string) {
	h.Number(len(s))
	_, _ = h.h.WriteString(s) // never fails
}

// Texts adds strings, and how many.
func (h *Hash) Texts(all []string) {
	h.Number(len(all))
	for _, s := range all {
		h.Text(s)
	}
}

func (h *Hash) word(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	_, _ = h.h.Write(b[:]) // never fails
}

func (h *Hash) half(x uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], x)
	_, _ = h.h.Write(b[:]) // never fails
}

// String is the fingerprint of what was added so far: XXH3 of 64 bits.
func (h *Hash) String() string { return fmt.Sprintf("xxh3:%016x", h.h.Sum64()) }
