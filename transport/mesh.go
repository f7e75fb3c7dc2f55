package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/wire"
)

// Pauses between two attempts to reach a peer.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Mesh connects node self.From to every other node of addrs, which may name
// the node itself too. It dials the nodes of lower number, again and again
// until they are up, and accepts those of higher number at l; so all nodes may
// start in any order. Every node of the run calls it with the same addrs.
//
// It returns one verified connection for each peer, or an error and none. It
// fails when ctx ends, naming the peers that are missing and what was last
// seen of them, and at once when a peer turns out to be wrong (see [Verify]).
// Who connects to l without being a node of this run is dropped and disturbs
// nobody.
func Mesh(ctx context.Context, nw Network, l Listener, self wire.Hello, addrs map[godwit.NodeID]string) (map[godwit.NodeID]Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &mesh{nw: nw, l: l, self: self, addrs: addrs, cancel: cancel, conns: map[godwit.NodeID]Conn{}, seen: map[godwit.NodeID]error{}}

	var wg sync.WaitGroup
	higher := 0
	for id := range addrs {
		switch {
		case id < self.From:
			wg.Go(func() { m.dial(ctx, id) })
		case id > self.From:
			higher++
		}
	}
	if higher > 0 {
		wg.Go(func() { m.accept(ctx, higher) })
	}
	wg.Wait()
	if err := m.result(ctx); err != nil {
		for _, c := range m.conns {
			c.Close()
		}
		return nil, err
	}
	return m.conns, nil
}

// mesh is one call of Mesh.
type mesh struct {
	nw     Network
	l      Listener
	self   wire.Hello
	addrs  map[godwit.NodeID]string
	cancel context.CancelCauseFunc // ends all of it with the first fatal error

	mu       sync.Mutex // guards all below
	conns    map[godwit.NodeID]Conn
	seen     map[godwit.NodeID]error // the last failure with a peer that may pass
	stranger error                   // the last one who was dropped
}

// peerError is fatal: a peer is there, and is wrong.
type peerError struct {
	self, peer godwit.NodeID
	addr       string
	err        error
}

func (e *peerError) Error() string {
	return fmt.Sprintf("transport: node %d cannot connect: node %d at %s %v", e.self, e.peer, e.addr, e.err)
}

func (e *peerError) Unwrap() error { return e.err }

func (m *mesh) fatal(id godwit.NodeID, err error) {
	m.cancel(&peerError{self: m.self.From, peer: id, addr: m.addrs[id], err: err})
}

// dial connects to one node of lower number, whenever that comes up.
func (m *mesh) dial(ctx context.Context, id godwit.NodeID) {
	hello := m.self
	hello.To = id
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := m.nw.Dial(ctx, m.addrs[id], hello)
		if err == nil {
			if err = Verify(hello, c.Peer()); err == nil {
				m.set(id, c)
				return
			}
			c.Close()
		}
		var wrong *Mismatch
		if errors.As(err, &wrong) {
			m.fatal(id, wrong)
			return
		}
		m.note(ctx, id, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// accept takes connections until all nodes of higher number are connected.
func (m *mesh) accept(ctx context.Context, higher int) {
	have := map[godwit.NodeID]bool{}
	for len(have) < higher {
		c, err := m.l.Accept(ctx, m.self)
		if err != nil {
			m.cancel(fmt.Errorf("transport: node %d cannot accept its peers: %w", m.self.From, err))
			return
		}
		peer := c.Peer()
		_, known := m.addrs[peer.From]
		known = known && peer.From > m.self.From
		hello := m.self
		hello.To = peer.From
		err = Verify(hello, peer)
		switch {
		case err == nil && known:
			have[peer.From] = true
			m.set(peer.From, c)
			continue
		case err != nil && known && peer.Run == m.self.Run && peer.To == m.self.From:
			m.fatal(peer.From, err)
		case err == nil:
			err = errors.New("is not expected to connect here")
			fallthrough
		default:
			m.mu.Lock()
			m.stranger = fmt.Errorf("one who calls itself node %d %w", peer.From, err)
			m.mu.Unlock()
		}
		c.Close()
	}
}

// set keeps a connection. A peer that connects again has lost the connection
// before, so the last one counts.
func (m *mesh) set(id godwit.NodeID, c Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.conns[id]; old != nil {
		old.Close()
	}
	m.conns[id] = c
}

// note remembers why a peer could not be reached yet; not, however, that there
// was no time left to try.
func (m *mesh) note(ctx context.Context, id godwit.NodeID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() == nil || m.seen[id] == nil {
		m.seen[id] = err
	}
}

// result returns nil if all peers are connected, and else why not.
func (m *mesh) result(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	for id, addr := range m.addrs {
		switch {
		case id == m.self.From || m.conns[id] != nil:
		case m.seen[id] != nil:
			missing = append(missing, fmt.Sprintf("node %d at %s cannot be reached (%v)", id, addr, m.seen[id]))
		default:
			missing = append(missing, fmt.Sprintf("node %d at %s did not connect", id, addr))
		}
	}
	cause := context.Cause(ctx)
	var wrong *peerError
	if errors.As(cause, &wrong) {
		return cause
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	if m.stranger != nil {
		missing = append(missing, fmt.Sprintf("a stranger was dropped: %v", m.stranger))
	}
	return fmt.Errorf("transport: node %d lacks peers: %s: %w", m.self.From, strings.Join(missing, "; "), cause)
}
