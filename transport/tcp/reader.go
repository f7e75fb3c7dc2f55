package tcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

const (
	firstRoom = 64 << 10  // bytes of memory of the reader of a connection that was made
	mostAhead = 512 << 10 // bytes of memory up to which a reader has room for several frames
	ahead     = 4         // how many frames of the longest that came
)

// A frameReader cuts a stream of bytes into frames. It reads as much as is
// there, many frames with one system call, and hands frames out where they lie.
type frameReader struct {
	r          io.Reader
	buf        []byte
	begin, end int           // buf[begin:end] was read and not handed out
	arrived    atomic.Uint64 // bytes
	err        error         // the first one; behind it nobody knows where a frame begins
}

// newFrameReader returns a reader that begins with so many bytes of memory.
func newFrameReader(r io.Reader, room int) frameReader {
	return frameReader{r: r, buf: transport.Room(nil, room)}
}

// enlarge gives the reader the memory that it has once a peer is known.
func (f *frameReader) enlarge() {
	buf := transport.Room(nil, firstRoom)
	f.begin, f.end = 0, copy(buf, f.buf[f.begin:f.end])
	f.buf = buf
}

// A lengthError reports a frame that no one would send.
type lengthError struct{ err error }

func (e *lengthError) Error() string { return e.err.Error() }

// next reads a frame of at most limit bytes as transport.Conn's ReadFrame does.
func (f *frameReader) next(limit int) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	frame, err := f.read(limit)
	if err != nil {
		if !temporary(err) {
			f.err = err
		}
		return nil, err
	}
	return frame, nil
}

// errWouldBlock is returned by a read that does not wait.
var errWouldBlock = errors.New("nothing has arrived")

// passes reports whether a read that failed can be tried again: what it read of
// a frame is kept.
func temporary(err error) bool { return err == errWouldBlock || errors.Is(err, os.ErrDeadlineExceeded) }

func (f *frameReader) read(limit int) ([]byte, error) {
	if f.begin == f.end {
		f.begin, f.end = 0, 0
	}
	for f.end-f.begin < wire.PrefixLen {
		if err := f.more(wire.PrefixLen); err != nil {
			return nil, err
		}
	}
	n, err := wire.FrameLen(f.buf[f.begin:f.end])
	if err == nil && n > limit {
		err = fmt.Errorf("a frame of %d bytes where at most %d may come", n, limit)
	}
	if err != nil {
		return nil, &lengthError{err}
	}
	for f.end-f.begin < n {
		if err := f.more(n); err != nil {
			return nil, err
		}
	}
	// Frames whose lengths are multiples of 8, as those of package wire are,
	// all begin at one. Another is moved over the end of the one before.
	if at := f.begin &^ 7; at != f.begin {
		copy(f.buf[at:], f.buf[f.begin:f.begin+n])
		f.begin += n
		return f.buf[at : at+n : at+n], nil
	}
	f.begin += n
	return f.buf[f.begin-n : f.begin : f.begin], nil
}

// ready reports whether the next frame is there as a whole.
func (f *frameReader) ready() bool {
	have := f.buf[f.begin:f.end]
	if len(have) < wire.PrefixLen {
		return false
	}
	n, err := wire.FrameLen(have)
	return err == nil && n <= len(have)
}

// more reads some bytes of a frame of n, of which not all are there.
func (f *frameReader) more(n int) error {
	if f.begin+n > len(f.buf) {
		f.makeRoom(n)
	}
	for range 100 {
		got, err := f.r.Read(f.buf[f.end:])
		f.end += got
		f.arrived.Add(uint64(got))
		switch {
		case got > 0:
			return nil // an error comes again
		case errors.Is(err, io.EOF) && f.end > f.begin:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// room returns memory for what a read may bring.
func (f *frameReader) room() []byte {
	if f.begin == f.end {
		f.begin, f.end = 0, 0
	}
	return f.buf[f.end:]
}

// makeRoom moves what is there to the beginning, and to larger memory if it
// fills what there is. That grows with what has arrived, not with what was
// claimed: a peer makes the reader allocate no more than a multiple of what it sends.
func (f *frameReader) makeRoom(n int) {
	buf, have := f.buf, f.end-f.begin
	if have > len(buf)/2 && len(buf) < max(n, min(ahead*n, mostAhead)) {
		buf = transport.Room(nil, min(2*len(buf), max(n, mostAhead)))
	}
	copy(buf, f.buf[f.begin:f.end])
	f.buf, f.begin, f.end = buf, 0, have
}
