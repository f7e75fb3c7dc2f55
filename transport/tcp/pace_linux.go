package tcp

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/godwit-ps/godwit/transport"
)

var _ transport.Pacer = (*conn)(nil)

// pace is what the system is asked by. It is made once: senders do not allocate.
type pace struct {
	raw    syscall.RawConn // nil: the system knows nothing
	ask    func(fd uintptr)
	info   unix.TCPInfo
	failed bool
	noRoom uint64 // microseconds in which the peer had no room, when it was asked last
}

func newPace(stream net.Conn) *pace {
	if t, is := stream.(interface{ NetConn() net.Conn }); is {
		stream = t.NetConn() // of TLS
	}
	p := &pace{}
	if t, is := stream.(*net.TCPConn); is {
		p.raw, _ = t.SyscallConn()
	}
	p.ask = func(fd uintptr) {
		size := uint32(unsafe.Sizeof(p.info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
			uintptr(unsafe.Pointer(&p.info)), uintptr(unsafe.Pointer(&size)), 0)
		p.failed = errno != 0
	}
	return p
}

// Pace implements transport.Pacer. The system measures how fast the peer's system acknowledges while
// there is something to send. If the peer had no room meanwhile, that says nothing of the network.
func (c *conn) Pace() (bytesPerSecond uint64) {
	if c.pace == nil {
		c.pace = newPace(c.stream)
	}
	p := c.pace
	if p.raw == nil || p.raw.Control(p.ask) != nil || p.failed {
		return 0 // a connection that is closed has no rate
	}
	if p.info.Rwnd_limited == p.noRoom {
		bytesPerSecond = p.info.Delivery_rate
	}
	p.noRoom = p.info.Rwnd_limited
	return bytesPerSecond
}
