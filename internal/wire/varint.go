package wire

// putUvarint writes v at b[i] and returns the index behind it. There must be
// room for maxVarint bytes.
func putUvarint(b []byte, i int, v uint64) int {
	for v >= 0x80 {
		b[i] = byte(v) | 0x80
		v >>= 7
		i++
	}
	b[i] = byte(v)
	return i + 1
}

// maxVarint is the most bytes that a number of 64 bits takes.
const maxVarint = 10

// uvarint reads the number at b[i] and returns the index behind it, or -1
// where it is cut off or exceeds 64 bits.
func uvarint(b []byte, i int) (uint64, int) {
	if i < len(b) && b[i] < 0x80 { // the usual number
		return uint64(b[i]), i + 1
	}
	var v uint64
	for s := uint(0); i < len(b) && s < 64; s += 7 {
		c := b[i]
		i++
		if c < 0x80 {
			if s == 63 && c > 1 {
				return 0, -1
			}
			return v | uint64(c)<<s, i
		}
		v |= uint64(c&0x7f) << s
	}
	return 0, -1
}

func zigzag(d int64) uint64     { return uint64(d<<1) ^ uint64(d>>63) }
func unzigzag(u uint64) int64   { return int64(u>>1) ^ -int64(u&1) }
func zigzag32(d int32) uint64   { return uint64(uint32(d<<1) ^ uint32(d>>31)) }
func unzigzag32(u uint64) int32 { return int32(u>>1) ^ -int32(u&1) }
