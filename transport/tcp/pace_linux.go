package tcp

import (
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/godwit-ps/godwit/transport"
)

var _ transport.Pacer = (*conn)(nil)

// pace is what the system is asked by. It is made once: senders do not allocate.
type pace struct {
	mu     sync.Mutex
	raw    syscall.RawConn // nil: the system knows nothing
	ask    func(fd uintptr)
	info   unix.TCPInfo
	failed bool
	noRoom uint64 // microseconds in which the peer had no room, when it was asked last
}

func (p *pace) begin(stream net.Conn) {
	if t, is := stream.(interface{ NetConn() net.Conn }); is {
		stream = t.NetConn() // of TLS
	}
	if t, is := stream.(*net.TCPConn); is {
		p.raw, _ = t.SyscallConn()
	}
	p.ask = func(fd uintptr) {
		size := uint32(unsafe.Sizeof(p.info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
			uintptr(unsafe.Pointer(&p.info)), uintptr(unsafe.Pointer(&size)), 0)
		p.failed = errno != 0
	}
}

// Pace implements transport.Pacer. The system measures how fast the peer's system acknowledges while
// there is something to send. If the peer had no room meanwhile, that says nothing of the network.
func (c *conn) Pace() (bytesPerSecond uint64, unsent int) {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	p := &c.pace
	if !p.asked(c.stream) {
		return 0, 0
	}
	if p.info.Rwnd_limited == p.noRoom {
		bytesPerSecond = p.info.Delivery_rate
	}
	p.noRoom = p.info.Rwnd_limited
	return bytesPerSecond, int(p.info.Notsent_bytes)
}

// Unsent implements transport.Pacer.
func (c *conn) Unsent() int {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	if !c.pace.asked(c.stream) {
		return 0
	}
	return int(c.pace.info.Notsent_bytes)
}

// asked asks the system. It reports false if that says nothing, as of a connection that is closed.
func (p *pace) asked(stream net.Conn) bool {
	if p.ask == nil {
		p.begin(stream)
	}
	return p.raw != nil && p.raw.Control(p.ask) == nil && !p.failed
}
