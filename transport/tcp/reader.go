package tcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/wire"
)

const (
	readBuffer = 64 << 10 // bytes read ahead: many small frames with one system call
	firstStep  = 64 << 10 // bytes of room for a frame before any of it arrived
)

// A frameReader cuts a stream of bytes into frames.
type frameReader struct {
	r   *bufio.Reader
	err error // the first one; behind it nobody knows where a frame begins
}

func newFrameReader(r io.Reader) frameReader {
	return frameReader{r: bufio.NewReaderSize(r, readBuffer)}
}

// A lengthError reports a frame that no one would send.
type lengthError struct{ err error }

func (e *lengthError) Error() string { return e.err.Error() }

// next reads a frame of at most limit bytes as transport.Conn's ReadFrame does.
func (f *frameReader) next(buf []byte, limit int) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	frame, err := f.read(buf, limit)
	if err != nil {
		f.err = err
		return nil, err
	}
	return frame, nil
}

func (f *frameReader) read(buf []byte, limit int) ([]byte, error) {
	prefix, err := f.r.Peek(wire.PrefixLen)
	if err != nil {
		if errors.Is(err, io.EOF) && len(prefix) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n, err := wire.FrameLen(prefix)
	if err == nil && n > limit {
		err = fmt.Errorf("a frame of %d bytes where at most %d may come", n, limit)
	}
	if err != nil {
		return nil, &lengthError{err}
	}
	// Room grows with what has arrived, not with what was claimed: a stranger
	// gets no more memory than he sends bytes, or twice that.
	have, size := 0, min(n, max(cap(buf), firstStep))
	buf = transport.Room(buf, size)
	for {
		if _, err := io.ReadFull(f.r, buf[have:size]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if size == n {
			return buf, nil
		}
		have, size = size, min(n, 2*size)
		grown := transport.Room(nil, size)
		copy(grown, buf)
		buf = grown
	}
}
