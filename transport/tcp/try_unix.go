//go:build unix

package tcp

import (
	"net"
	"syscall"
)

// A trier writes to a socket what it takes at once.
type trier struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool // made once: a try allocates nothing
	b   []byte
	n   int
	err error
}

// newTrier returns nil for a stream that is no plain socket.
func newTrier(stream net.Conn) *trier {
	c, ok := stream.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	t := &trier{raw: raw}
	t.do = t.writeTo
	return t
}

// write returns how many bytes of b were taken.
func (t *trier) write(b []byte) (int, error) {
	t.b, t.n, t.err = b, 0, nil
	err := t.raw.Write(t.do)
	t.b = nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

// writeTo writes t.b to a socket; true tells the caller not to wait for it.
func (t *trier) writeTo(fd uintptr) bool {
	for t.n < len(t.b) {
		n, err := syscall.Write(int(fd), t.b[t.n:])
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return true
		case err != nil:
			t.err = err
			return true
		default:
			t.n += n
		}
	}
	return true
}
