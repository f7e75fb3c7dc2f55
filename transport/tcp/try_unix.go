//go:build unix

package tcp

import (
	"io"
	"net"
	"syscall"
)

// rawOf returns the socket of a stream, nil if it is no plain one.
func rawOf(stream net.Conn) syscall.RawConn {
	c, ok := stream.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// A trier writes to a socket, what it takes at once or all.
type trier struct {
	raw     syscall.RawConn
	do, all func(fd uintptr) bool // made once: a try allocates nothing
	b       []byte
	n       int
	err     error
}

// newTrier returns nil for a stream that is no plain socket.
func newTrier(stream net.Conn) *trier {
	raw := rawOf(stream)
	if raw == nil {
		return nil
	}
	t := &trier{raw: raw}
	t.do = func(fd uintptr) bool { t.writeTo(fd); return true } // which says not to wait
	t.all = func(fd uintptr) bool { t.writeTo(fd); return t.err != nil || t.n == len(t.b) }
	return t
}

// write returns how many bytes of b were taken.
func (t *trier) write(b []byte) (int, error) { return t.by(t.do, b) }

// writeAll waits until all are.
func (t *trier) writeAll(b []byte) error {
	_, err := t.by(t.all, b)
	return err
}

func (t *trier) by(do func(fd uintptr) bool, b []byte) (int, error) {
	t.b, t.n, t.err = b, 0, nil
	err := t.raw.Write(do)
	t.b = nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

// writeTo writes what the socket takes of the rest of t.b.
func (t *trier) writeTo(fd uintptr) {
	for t.n < len(t.b) {
		n, err := writeSocket(fd, t.b[t.n:])
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return
		case err != nil:
			t.err = err
			return
		default:
			t.n += n
		}
	}
}

// A source reads from a socket, and waits until something is there.
type source struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool // made once: a read allocates nothing
	b   []byte
	n   int
	err error
}

// newSource returns what reads a stream: the stream itself, if it is no plain socket.
func newSource(stream net.Conn) io.Reader {
	raw := rawOf(stream)
	if raw == nil {
		return stream
	}
	s := &source{raw: raw}
	s.do = s.readFrom
	return s
}

func (s *source) Read(b []byte) (int, error) {
	s.b, s.n, s.err = b, 0, nil
	err := s.raw.Read(s.do)
	s.b = nil
	if err == nil {
		err = s.err
	}
	return s.n, err
}

// readFrom reports false if there is nothing yet.
func (s *source) readFrom(fd uintptr) bool {
	s.n, s.err = readNow(fd, s.b)
	return s.err != syscall.EAGAIN
}

// readNow reads what is there: syscall.EAGAIN if that is nothing yet, io.EOF if nothing will be any more.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		switch n, err := readSocket(fd, b); {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
