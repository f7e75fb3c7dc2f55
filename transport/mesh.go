package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
)

// Pauses between two attempts to reach a peer.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// A Peer is a member of the run as [Mesh] must know it.
type Peer struct {
	ID          godwit.NodeID // its number in the run
	Addr        string        // where it listens
	Incarnation uint64        // which process it is
}

// Mesh connects node self.From to every other one of peers, which may name
// the node itself too. It dials the nodes of lower number, again and again
// until they are up, and accepts those of higher number at l; so all nodes may
// start in any order. Every node of the run calls it with the same peers and the
// secret of the run.
//
// It returns one connection for each peer, which has proved itself, was verified
// and has confirmed; or an error and none. It fails at once when a peer turns out
// to be wrong (see [Verify]), and when ctx ends, with an error that wraps the
// cause and the last [*DialError] of each peer, and names the peers that are missing,
// their addresses and what was last seen of them. Who cannot reach a peer gives up after half of the time that ctx
// leaves: it knows why, and can tell the others while they still wait.
//
// Who connects to l without being a member of this run is dropped and disturbs
// nobody.
func Mesh(ctx context.Context, nw Network, l Listener, self Hello, secret []byte, peers []Peer) (map[godwit.NodeID]Conn, error) {
	if err := CheckSecret(secret); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &mesh{nw: nw, l: l, self: self, secret: secret, peers: map[godwit.NodeID]Peer{}, began: time.Now(), cancel: cancel,
		conns: map[godwit.NodeID]Conn{}, seen: map[godwit.NodeID]error{}}
	for _, p := range peers {
		m.peers[p.ID] = p
	}

	var wg sync.WaitGroup
	higher := 0
	for id := range m.peers {
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
	self   Hello
	secret []byte
	peers  map[godwit.NodeID]Peer
	began  time.Time
	cancel context.CancelCauseFunc // ends all of it with the first fatal error

	mu       sync.Mutex // guards all below
	conns    map[godwit.NodeID]Conn
	seen     map[godwit.NodeID]error // the last failure with a peer that may pass
	rejected error                   // why the last connection of no peer was dropped
}

// peerError is fatal: a peer is there, and is wrong.
type peerError struct {
	self godwit.NodeID
	peer Peer
	err  error
}

func (e *peerError) Error() string {
	return fmt.Sprintf("transport: node %d cannot connect: node %d at %s %v", e.self, e.peer.ID, e.peer.Addr, e.err)
}

func (e *peerError) Unwrap() error { return e.err }

func (m *mesh) fatal(id godwit.NodeID, err error) {
	m.cancel(&peerError{self: m.self.From, peer: m.peers[id], err: err})
}

// dial connects to one node of lower number, whenever that comes up.
func (m *mesh) dial(ctx context.Context, id godwit.NodeID) {
	hello := m.self
	hello.To = id
	half, cancel := m.half(ctx)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := m.nw.Dial(half, m.peers[id].Addr, hello, m.secret)
		if err == nil {
			if err = Verify(hello, c.Peer(), m.peers[id].Incarnation); err == nil {
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
		m.note(half, id, err)
		select {
		case <-half.Done():
			m.cancel(context.Cause(half)) // of no effect if it was ctx that ended
			return
		case <-time.After(pause):
		}
	}
}

// half returns a context that ends at half of the time that ctx leaves.
func (m *mesh) half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := end.Sub(m.began) / 2
	return context.WithDeadlineCause(ctx, m.began.Add(left), &silenceError{left})
}

// A silenceError is why a node gives up dialing one that does not answer.
type silenceError struct{ after time.Duration }

func (s *silenceError) Error() string {
	return fmt.Sprintf("no answer within %v", s.after.Round(10*time.Millisecond))
}

func (s *silenceError) Unwrap() error { return context.DeadlineExceeded }

// accept takes connections until all nodes of higher number are connected.
func (m *mesh) accept(ctx context.Context, higher int) {
	have := map[godwit.NodeID]bool{}
	for len(have) < higher {
		c, err := m.l.Accept(ctx, m.self, m.secret)
		if err != nil {
			m.cancel(fmt.Errorf("transport: node %d cannot accept its peers: %w", m.self.From, err))
			return
		}
		peer := c.Peer()
		member, known := m.peers[peer.From]
		known = known && peer.From > m.self.From
		hello := m.self
		hello.To = peer.From
		err = Verify(hello, peer, member.Incarnation)
		switch {
		case err == nil && known:
			have[peer.From] = true
			m.set(peer.From, c)
			continue
		case err != nil && known && peer.Run == m.self.Run && peer.To == m.self.From:
			m.fatal(peer.From, err)
		case !known:
			err = errors.New("is not expected to connect here")
			fallthrough
		default:
			m.mu.Lock()
			m.rejected = fmt.Errorf("one that says it is node %d %w", peer.From, err)
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
	for id, p := range m.peers {
		switch {
		case id == m.self.From || m.conns[id] != nil:
		case id < m.self.From:
			missing = append(missing, fmt.Sprintf("node %d cannot reach node %d at %s: %v", m.self.From, id, p.Addr, reason(m.seen[id])))
		default:
			missing = append(missing, fmt.Sprintf("node %d at %s did not connect to node %d at %s", id, p.Addr, m.self.From, m.peers[m.self.From].Addr))
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
	if m.rejected != nil {
		missing = append(missing, fmt.Sprintf("a connection was dropped: %v", m.rejected))
	}
	e := &missingError{text: strings.Join(missing, "; "), causes: append([]error{cause}, m.failures()...)}
	if errors.Is(cause, context.DeadlineExceeded) {
		e.within = time.Since(m.began).Round(10 * time.Millisecond)
	}
	return e
}

// failures returns the last error with each peer that could not be reached, by id. The
// lock is held.
func (m *mesh) failures() (errs []error) {
	for _, id := range slices.Sorted(maps.Keys(m.seen)) {
		if m.conns[id] == nil && m.seen[id] != nil {
			errs = append(errs, m.seen[id])
		}
	}
	return errs
}

// reason is what kept a peer from being reached, without what is said already.
func reason(err error) error {
	var d *DialError
	switch {
	case err == nil:
		return errors.New("there was no time to try")
	case errors.As(err, &d):
		return d.Err
	}
	return err
}

// A missingError says which peers a node lacks.
type missingError struct {
	text   string
	within time.Duration // that they were waited for; 0: the wait ended for another reason
	causes []error       // why the wait ended, and the last error with each peer
}

func (e *missingError) Error() string {
	if e.within > 0 {
		return fmt.Sprintf("transport: not connected within %v: %s", e.within, e.text)
	}
	return fmt.Sprintf("transport: %s (%v)", e.text, e.causes[0])
}

func (e *missingError) Unwrap() []error { return e.causes }
