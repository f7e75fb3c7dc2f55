package filter

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/godwit-ps/godwit"
)

// A Method is a way to compress.
type Method string

const (
	S2   Method = "s2"   // fast, some gain
	Zstd Method = "zstd" // slower, more gain; at its fastest setting
)

// Compress compresses frames, without loss. Frames carry records of many
// tables and of all kinds, so a table's Compress applies to all frames of the
// node, and a single call cannot bring one. Where frames do not get shorter,
// package node soon tries it only occasionally.
type Compress struct {
	Method Method // S2 or Zstd
}

func (f Compress) Name() string { return string(f.Method) }

// Check returns what is wrong with the settings.
func (f Compress) Check() error {
	if f.Method != S2 && f.Method != Zstd {
		return fmt.Errorf("there is no compression method %q, want %s or %s", f.Method, S2, Zstd)
	}
	return nil
}

// Filter changes nothing: frames are compressed when they are written.
func (Compress) Filter(*godwit.FilterBatch) {}

// MaxLoss returns LossNone.
func (Compress) MaxLoss() godwit.Loss { return godwit.LossNone }

// atATime is how many frames zstd compresses or decompresses at the same time; further
// callers wait for one of them.
const atATime = 4

// Encoder and decoder of zstd are made at the first use: they take a megabyte and
// more. Their functions may be used by several goroutines.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(atATime), zstd.WithEncoderCRC(false),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(atATime), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	})
)

// Pack appends src compressed to dst. Equal src give equal bytes.
func (f Compress) Pack(dst, src []byte) ([]byte, error) {
	if f.Method == S2 {
		n := s2.MaxEncodedLen(len(src))
		if n < 0 {
			return dst, fmt.Errorf("filter: %d bytes are too many to compress at once", len(src))
		}
		if cap(dst)-len(dst) < n {
			dst = append(make([]byte, 0, len(dst)+n), dst...)
		}
		out := s2.Encode(dst[len(dst):len(dst)+n], src)
		return dst[:len(dst)+len(out)], nil
	}
	e, err := zstdEncoder()
	if err != nil {
		return dst, err
	}
	return e.EncodeAll(src, dst), nil
}

// Unpack decompresses src into dst, which must have exactly the length that
// src had before. It never allocates
// by a length that src claims, and returns an error for any bytes that are not Pack's
// output for exactly that length.
func (f Compress) Unpack(dst, src []byte) error {
	if f.Method == S2 {
		n, err := s2.DecodedLen(src)
		if err == nil && n != len(dst) {
			err = fmt.Errorf("the header claims a length of %d bytes", n)
		}
		if err == nil {
			_, err = s2.Decode(dst, src)
		}
		return f.unpacked(dst, src, err)
	}
	d, err := zstdDecoder()
	if err == nil {
		var out []byte
		out, err = d.DecodeAll(src, dst[:0:len(dst)])
		if err == nil && len(out) != len(dst) {
			err = fmt.Errorf("the content has %d bytes", len(out))
		}
	}
	return f.unpacked(dst, src, err)
}

func (f Compress) unpacked(dst, src []byte, err error) error {
	if err != nil {
		return fmt.Errorf("filter: %d bytes are not %d bytes compressed by %s: %w", len(src), len(dst), f.Method, err)
	}
	return nil
}
