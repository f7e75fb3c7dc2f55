package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A Coding is how the values of a record are written. Every coding is exact:
// what is read has the bits of what was written. Who wants fewer bytes rounds
// the values before, to those that the coding can write; a record with any
// other value is written Raw, or Raw | Sparse.
//
// A Coding is one of the first four constants, alone or with Sparse.
type Coding uint8

const (
	Raw     Coding = iota // 4 bytes each
	BF16                  // 2 bytes each: values whose low 16 bits are zero
	Fixed8                // 1 byte each: q·Step for whole q of −127 … 127, rounded to float32; no −0
	Fixed16               // 2 bytes each: likewise for q of −32767 … 32767

	// Sparse drops the values that are +0 (not −0), for one bit a value.
	Sparse Coding = 1 << 4

	// stepped is only in frames: each record has its step in front of its values.
	stepped Coding = 1 << 7
)

func (c Coding) base() Coding { return c &^ (Sparse | stepped) }

// fixed reports whether values are multiples of a step.
func (c Coding) fixed() bool { return c.base() == Fixed8 || c.base() == Fixed16 }

// valid reports whether there is such a coding.
func (c Coding) valid() bool { return c&^(Sparse|3) == 0 }

// width is the bytes of a value.
func (c Coding) width() int {
	switch c.base() {
	case BF16, Fixed16:
		return 2
	case Fixed8:
		return 1
	}
	return 4
}

// ownStep is from how many floats on a record of fixed point has its step by
// itself: for fewer, 4 bytes are more than a new run now and then costs.
const ownStep = 16

const stepBytes = 4

// stretch is how many values a sparse coding takes at a time: one for each bit of a word.
const stretch = 64

// mostBytes bounds the bytes that n values take in any coding.
func mostBytes(n int) int { return stepBytes + (n+7)/8 + 4*n }

// putCoded appends vals to b, which has room for mostBytes of them. It reports
// false, and b is of no more use, if the coding cannot write one of them.
func putCoded(b []byte, vals []float32, c Coding, step float32) ([]byte, bool) {
	if c&stepped != 0 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(step))
	}
	if c&Sparse == 0 {
		n := len(b)
		b = b[:n+len(vals)*c.width()]
		return b, putDense(b[n:], vals, c, step)
	}
	at := len(b)
	end := at + (len(vals)+7)/8
	bitmap := b[at:end]
	w := c.width()
	var some [stretch]float32
	for len(vals) > 0 {
		n := min(len(vals), stretch)
		bits, k := uint64(0), 0
		for _, v := range vals[:n] { // without a branch on what a value is
			u := uint64(math.Float32bits(v))
			is := -u >> 63
			some[k&(stretch-1)] = v
			bits = bits>>1 | is<<63
			k += int(is)
		}
		bits >>= (stretch - n) & (stretch - 1)
		vals = vals[n:]
		for ; n > 0; n -= 8 {
			bitmap[0] = byte(bits)
			bits, bitmap = bits>>8, bitmap[1:]
		}
		first := end
		end += k * w
		if !putDense(b[first:end], some[:k], c, step) {
			return b, false
		}
	}
	return b[:end], true
}

// putDense writes all vals to b, which is as long as they take.
func putDense(b []byte, vals []float32, c Coding, step float32) bool {
	switch c.base() {
	case Raw:
		putFloats(b, vals)
	case BF16:
		low := uint32(0)
		for ; len(vals) >= 4 && len(b) >= 8; vals, b = vals[4:], b[8:] {
			u, v, x, y := math.Float32bits(vals[0]), math.Float32bits(vals[1]), math.Float32bits(vals[2]), math.Float32bits(vals[3])
			low |= u | v | x | y
			binary.LittleEndian.PutUint64(b, uint64(u>>16|v&^0xffff)|uint64(x>>16|y&^0xffff)<<32)
		}
		for len(vals) > 0 && len(b) >= 2 {
			u := math.Float32bits(vals[0])
			low |= u
			binary.LittleEndian.PutUint16(b, uint16(u>>16))
			vals, b = vals[1:], b[2:]
		}
		return low&0xffff == 0
	case Fixed8:
		inverse := 1 / float64(step)
		for i, v := range vals {
			q := nearest(v, inverse)
			if q < -math.MaxInt8 || q > math.MaxInt8 || math.Float32bits(times(q, step)) != math.Float32bits(v) {
				return false
			}
			b[i] = byte(q)
		}
	case Fixed16:
		inverse := 1 / float64(step)
		for i, v := range vals {
			q := nearest(v, inverse)
			if q < -math.MaxInt16 || q > math.MaxInt16 || math.Float32bits(times(q, step)) != math.Float32bits(v) {
				return false
			}
			binary.LittleEndian.PutUint16(b[2*i:], uint16(q))
		}
	}
	return true
}

// nearest returns the whole number nearest to v·inverse if that is of 16 bits,
// and any number if not.
func nearest(v float32, inverse float64) int {
	const shift = 3 << 51 // where a float64 has its units in the lowest bits
	return int(int32(math.Float64bits(float64(v)*inverse + shift)))
}

// times returns q·step, and +0 where that is -0.
func times(q int, step float32) float32 { return float32(q)*step + 0 }

// codedLen returns the bytes that n values in front of b take, or -1 where
// they are cut off.
func codedLen(b []byte, n int, c Coding) int {
	at := 0
	if c&stepped != 0 {
		at = stepBytes
	}
	if c&Sparse == 0 {
		at += n * c.width()
	} else {
		bitmap := at
		if at += (n + 7) / 8; at > len(b) {
			return -1
		}
		left := 0
		for _, x := range b[bitmap:at] {
			left += bits.OnesCount8(x)
		}
		at += left * c.width()
	}
	if at > len(b) {
		return -1
	}
	return at
}

// readCoded reads values from the codedLen bytes b into dst and returns their
// step. It reports false where bits are set for values that do not exist.
func readCoded(dst []float32, b []byte, c Coding, step float32) (float32, bool) {
	if c&stepped != 0 {
		step = math.Float32frombits(binary.LittleEndian.Uint32(b))
		b = b[stepBytes:]
	}
	if c&Sparse == 0 {
		readDense(dst, b, c, step)
		return step, true
	}
	n := (len(dst) + 7) / 8
	bitmap, b := b[:n], b[n:]
	if r := len(dst) % 8; r > 0 && bitmap[n-1]>>r != 0 {
		return step, false
	}
	clear(dst)
	w := c.width()
	var some [stretch]float32
	for len(dst) > 0 {
		set := uint64(0)
		for i, x := range bitmap[:min(len(bitmap), stretch/8)] {
			set |= uint64(x) << (8 * i & (stretch - 1))
		}
		k := bits.OnesCount64(set)
		readDense(some[:k], b, c, step)
		for _, v := range some[:k] {
			dst[bits.TrailingZeros64(set)] = v
			set &= set - 1
		}
		b = b[k*w:]
		if len(dst) <= stretch {
			break
		}
		dst, bitmap = dst[stretch:], bitmap[stretch/8:]
	}
	return step, true
}

func readDense(dst []float32, b []byte, c Coding, step float32) {
	switch c.base() {
	case Raw:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case BF16:
		for ; len(dst) >= 4 && len(b) >= 8; dst, b = dst[4:], b[8:] {
			w := binary.LittleEndian.Uint64(b)
			dst[0], dst[1] = math.Float32frombits(uint32(w)<<16), math.Float32frombits(uint32(w)&^0xffff)
			dst[2], dst[3] = math.Float32frombits(uint32(w>>32)<<16), math.Float32frombits(uint32(w>>32)&^0xffff)
		}
		for len(dst) > 0 && len(b) >= 2 {
			dst[0] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
			dst, b = dst[1:], b[2:]
		}
	case Fixed8:
		for i := range dst {
			dst[i] = times(int(int8(b[i])), step)
		}
	case Fixed16:
		for i := range dst {
			dst[i] = times(int(int16(binary.LittleEndian.Uint16(b[2*i:]))), step)
		}
	}
}
