package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/godwit-ps/godwit/internal/wire"
)

// plainFrames is the specification of the frameReader on bytes that are all
// there: the frames, and the error behind them.
func plainFrames(b []byte, limit int) (frames [][]byte, end error) {
	for {
		switch {
		case len(b) == 0:
			return frames, io.EOF
		case len(b) < 4:
			return frames, io.ErrUnexpectedEOF
		}
		n := int(binary.LittleEndian.Uint32(b))
		switch {
		case n < wire.HeaderLen || n > limit:
			return frames, &lengthError{}
		case n > len(b):
			return frames, io.ErrUnexpectedEOF
		}
		frames, b = append(frames, b[:n]), b[n:]
	}
}

func FuzzFrameReader(f *testing.F) {
	whole := make([]byte, wire.HeaderLen)
	whole[0] = wire.HeaderLen
	f.Add(whole, uint16(100))
	f.Add(append(bytes.Repeat(whole, 3), whole[:5]...), uint16(16))
	f.Add([]byte{20, 0, 0}, uint16(20))
	f.Add([]byte("GET / HTTP/1.1\r\n"), uint16(60000))
	f.Fuzz(func(t *testing.T, b []byte, limit uint16) {
		want, end := plainFrames(b, int(limit))
		for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b))} {
			fr := newFrameReader(r, firstRoom)
			for i, w := range want {
				got, err := fr.next(int(limit))
				if err != nil || !bytes.Equal(got, w) {
					t.Fatalf("frame %d is %x, %v; want %x", i, got, err, w)
				}
				clear(got[:cap(got)]) // the caller's to change
			}
			for range 2 {
				_, err := fr.next(int(limit))
				if is[*lengthError](err) != is[*lengthError](end) || !is[*lengthError](end) && !errors.Is(err, end) {
					t.Fatalf("after %d frames: error %v, want %v", len(want), err, end)
				}
			}
		}
	})
}
