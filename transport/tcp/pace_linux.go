package tcp

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/godwit-ps/godwit/transport"
)

var _ transport.Pacer = (*conn)(nil)

// Pace implements transport.Pacer. The system measures how fast the peer's system acknowledges while
// there is something to send. If the peer had no room meanwhile, that says nothing of the network.
func (c *conn) Pace() (bytesPerSecond uint64) {
	stream := c.stream
	if t, is := stream.(interface{ NetConn() net.Conn }); is {
		stream = t.NetConn() // of TLS
	}
	t, is := stream.(*net.TCPConn)
	if !is {
		return 0
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // a connection that is closed has no rate
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		if i.Rwnd_limited == c.noRoom {
			bytesPerSecond = i.Delivery_rate
		}
		c.noRoom = i.Rwnd_limited
	})
	return bytesPerSecond
}
