package slownet

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/internal/wire"
)

// A Network is interfaces of nodes and the ways between them.
type Network struct {
	latency   time.Duration
	bandwidth float64 // bits a second, in each direction of an interface; 0: any

	mu         sync.Mutex
	interfaces []wires            // of each node
	closers    map[io.Closer]bool // listeners and connections
	closed     bool
	running    sync.WaitGroup
}

// wires are when an interface has sent and received what it was given so far.
type wires struct{ out, in time.Time }

// New returns a network of so many nodes. Latency is that of one way.
func New(nodes int, latency time.Duration, bandwidth float64) *Network {
	return &Network{latency: latency, bandwidth: bandwidth, interfaces: make([]wires, nodes), closers: map[io.Closer]bool{}}
}

// Listen returns an address of loopback by which others reach the node that listens
// at target.
func (n *Network) Listen(target string) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	if !n.keep(l) {
		return "", net.ErrClosed
	}
	n.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.running.Go(func() { n.serve(c, target) })
		}
	})
	return l.Addr().String(), nil
}

// Close ends all connections and returns when nothing runs any more.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	var errs []error
	for c := range n.closers {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	n.mu.Unlock()
	n.running.Wait()
	return errors.Join(errs...)
}

// keep has Close close something; it closes it at once if the network is closed.
func (n *Network) keep(c io.Closer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = c.Close()
		return false
	}
	n.closers[c] = true
	return true
}

func (n *Network) drop(c io.Closer) {
	n.mu.Lock()
	delete(n.closers, c)
	n.mu.Unlock()
	_ = c.Close()
}

// serve passes on a connection until one of its directions ends.
func (n *Network) serve(from net.Conn, target string) {
	defer n.drop(from)
	if !n.keep(from) {
		return
	}
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer n.drop(to)
	if !n.keep(to) {
		return
	}
	c := &connection{network: n, ends: [2]int{unknown, unknown}}
	var both sync.WaitGroup
	both.Go(func() { c.pass(to, from, 0) })
	both.Go(func() { c.pass(from, to, 1) })
	both.Wait()
}

// unknown is a node of a connection whose hello was not read yet.
const unknown = -1

// A connection is between the nodes of both ends, the dialer's first.
type connection struct {
	network *Network
	heard   []byte // what the dialer has sent, until its hello was read

	mu   sync.Mutex
	ends [2]int
}

// A piece is bytes that arrive at a time.
type piece struct {
	due   time.Time
	bytes []byte
}

// pieces is how many pieces of a direction may be under way.
const pieces = 1024

// pass passes on what comes from one side, in a direction: 0 is from the dialer.
func (c *connection) pass(to, from net.Conn, direction int) {
	queue := make(chan piece, pieces)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() {
			_ = to.Close()
			_ = from.Close() // the reader ends, too
		}()
		broken := false
		for p := range queue {
			if broken {
				continue // the reader is about to notice
			}
			sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				broken = true
				_ = from.Close()
			}
		}
	})
	buf := make([]byte, 1<<16)
	for {
		k, err := from.Read(buf)
		if k > 0 {
			if direction == 0 {
				c.hear(buf[:k])
			}
			queue <- piece{c.due(direction, k), append([]byte(nil), buf[:k]...)}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writing.Wait()
}

// due returns when bytes that are sent now arrive: one interface is taken by them,
// then comes the way, then the other interface.
func (c *connection) due(direction, bytes int) time.Time {
	c.mu.Lock()
	from, to := c.ends[direction], c.ends[1-direction]
	c.mu.Unlock()
	n := c.network
	at := time.Now()
	if from == unknown || to == unknown || n.bandwidth == 0 {
		return at.Add(n.latency)
	}
	took := time.Duration(float64(8*bytes) / n.bandwidth * 1e9)
	n.mu.Lock()
	defer n.mu.Unlock()
	out, in := &n.interfaces[from].out, &n.interfaces[to].in
	*out = later(at, *out).Add(took)
	*in = later(out.Add(n.latency), *in).Add(took)
	return *in
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hear reads the hello of a dialer, which is one of its first frames: it says between
// which nodes the connection is.
func (c *connection) hear(bytes []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const most = 4096 // of what may come before
	if c.ends[0] != unknown || len(c.heard) > most {
		return
	}
	c.heard = append(c.heard, bytes...)
	for rest := c.heard; len(rest) >= 4; {
		n, err := wire.FrameLen(rest)
		if err != nil || n > len(rest) {
			return
		}
		if h, err := wire.ParseHello(rest[:n]); err == nil {
			if from, to := int(h.From), int(h.To); max(from, to) < len(c.network.interfaces) {
				c.ends, c.heard = [2]int{from, to}, nil
			}
			return
		}
		rest = rest[n:]
	}
}
