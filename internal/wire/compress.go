package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The flags of a header that say how a data frame is compressed, and in its
// upper three bits how many zeros fill it up.
const (
	flagS2   = 1
	flagZstd = 2

	padShift = 5
)

// Compression returns how a frame is compressed, SupportsS2 or SupportsZstd; 0 if it
// is not, or is no data frame. It looks at the header only.
func Compression(frame []byte) Features {
	if len(frame) < DataLen || frame[6] != typeData {
		return 0
	}
	switch frame[7] & (1<<padShift - 1) {
	case flagS2:
		return SupportsS2
	case flagZstd:
		return SupportsZstd
	}
	return 0
}

// Compress writes a data frame that is not compressed, compressed, into the
// memory of dst. by is SupportsS2 or SupportsZstd; pack appends what it made of src to
// dst. The lists of values and of runs are compressed as one.
func Compress(dst, frame []byte, by Features, pack func(dst, src []byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst[:0], frame[:DataLen]...)
	dst, err := pack(dst, frame[DataLen:])
	if err != nil {
		return nil, err
	}
	pad := -len(dst) & (frameAlign - 1)
	dst = append(dst, make([]byte, pad)...)
	flag := byte(flagS2)
	if by == SupportsZstd {
		flag = flagZstd
	}
	dst[7] = flag | byte(pad)<<padShift
	binary.LittleEndian.PutUint32(dst[HeaderLen+4:], uint32(len(frame)))
	putLen(dst)
	return dst, nil
}

// Decompress restores a compressed data frame in the memory of dst, and returns
// it. unpack fills dst with what src was before, or fails; its dst has the length
// that the frame claims, of which no more is believed than that it may be.
func Decompress(dst, frame []byte, unpack func(dst, src []byte) error) ([]byte, error) {
	if err := CheckLen(frame); err != nil {
		return nil, err
	}
	if frame[5] != Version {
		return nil, &VersionError{Theirs: int(frame[5])}
	}
	end := len(frame) - int(frame[7]>>padShift)
	size := binary.LittleEndian.Uint32(frame[HeaderLen+4:])
	if end < DataLen {
		return nil, headerError(7, fmt.Sprintf("%d bytes fill up a frame of %d", frame[7]>>padShift, len(frame)))
	}
	if size < DataLen || size > MaxFrame || size%frameAlign != 0 {
		return nil, headerError(HeaderLen+4, fmt.Sprintf("a length of %d bytes before compression, want a multiple of %d, %d … %d", size, frameAlign, DataLen, MaxFrame))
	}
	for i := end; i < len(frame); i++ {
		if frame[i] != 0 {
			return nil, headerError(i, "what fills up a frame is not zero")
		}
	}
	dst = slices.Grow(dst[:0], int(size))[:size]
	copy(dst, frame[:DataLen])
	dst[7] = 0
	clear(dst[HeaderLen+4 : DataLen])
	putLen(dst)
	if err := unpack(dst[DataLen:], frame[DataLen:end]); err != nil {
		return nil, headerError(DataLen, err.Error())
	}
	return dst, nil
}
