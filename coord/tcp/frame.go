package tcp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A kind says what a frame is about. A frame is its length after these four bytes, its kind, the
// node that it is about, and a payload.
type kind uint8

const (
	ping     kind = iota + 1 // the sender lives
	withdraw                 // node → server: it does not wait any more, and wants to know for whom it did
	register                 // node → server: a registration, the first frame; the node is the seat that is asked for
	sealed                   // server → node: all registrations, and which the node is
	refused                  // server → node: why it is no member
	message                  // of a member; sent back to all, the sender included
	lost                     // server → node: a member is gone; why
	lease                    // server → node, the first frame but pings: after how many nanoseconds without a frame an end counts as lost
)

const (
	headSize = 4 + 1 + 2
	maxFrame = coord.MaxPayload + 64<<10
)

func appendFrame(b []byte, k kind, id godwit.NodeID, payload []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(headSize-4+len(payload)))
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return append(b, payload...)
}

func readFrame(r io.Reader) (k kind, id godwit.NodeID, payload []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - (headSize - 4)
	if n < 0 || n > maxFrame {
		return 0, 0, nil, fmt.Errorf("a frame of %d bytes, want at most %d", n, maxFrame)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, 0, nil, err
	}
	return kind(head[4]), godwit.NodeID(binary.BigEndian.Uint16(head[5:])), payload, nil
}

// A peer is one end of a connection. Frames are queued, and written by a goroutine of its own,
// which also tells the other end now and then that this one lives.
type peer struct {
	conn net.Conn
	ttl  time.Duration // after so long without a frame the other end counts as lost
	most int           // bytes that may be queued: an end that lets more wait is lost
	work sync.WaitGroup

	mu    sync.Mutex
	queue []byte
	ended bool          // nothing is queued any more
	heard time.Time     // when the last frame came
	bell  chan struct{} // has a token when there is something to write, or nothing will be
}

// queued is how much may wait in a run of so many nodes: what each of them says of an exchange, and more. So a
// node that stands still for less than its lease is not lost by what the others say meanwhile.
func queued(nodes int) int { return (nodes + 16) * maxFrame }

// newPeer begins to write to a connection in a run of so many nodes.
func newPeer(c net.Conn, ttl time.Duration, nodes int) *peer {
	p := &peer{conn: c, ttl: ttl, most: queued(nodes), bell: make(chan struct{}, 1), heard: time.Now()}
	p.work.Go(p.write)
	return p
}

func (p *peer) send(k kind, id godwit.NodeID, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if p.queue = appendFrame(p.queue, k, id, payload); len(p.queue) > p.most {
		p.ended = true
		_ = p.conn.Close()
	}
	p.ring()
}

func (p *peer) ring() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// end has what is queued written, and tells the other end that nothing follows. What that
// has sent is read until it ends, too: else it might not read this.
func (p *peer) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.ring()
}

func (p *peer) write() {
	lives := time.NewTicker(max(p.ttl/4, time.Millisecond))
	defer lives.Stop()
	for {
		p.mu.Lock()
		b, ended := p.queue, p.ended
		p.queue = nil
		p.mu.Unlock()
		_ = p.conn.SetWriteDeadline(time.Now().Add(p.ttl))
		if _, err := p.conn.Write(b); err != nil {
			_ = p.conn.Close()
			return
		}
		if half, ok := p.conn.(*net.TCPConn); ended {
			if ok {
				_ = half.CloseWrite()
			}
			return
		}
		select {
		case <-p.bell:
		case <-lives.C:
			p.send(ping, 0, nil)
		}
	}
}

// read returns the next frame that is no ping.
func (p *peer) read() (kind, godwit.NodeID, []byte, error) {
	for {
		_ = p.conn.SetReadDeadline(time.Now().Add(p.ttl))
		k, id, payload, err := readFrame(p.conn)
		if err == nil {
			p.mu.Lock()
			p.heard = time.Now()
			p.mu.Unlock()
		}
		if err != nil || k != ping {
			return k, id, payload, err
		}
	}
}

// silence is for how long nothing has come. It is little more than a quarter of the TTL while the other end lives.
func (p *peer) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.heard)
}
