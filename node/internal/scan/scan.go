package scan

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// Each calls do with the keys in use from first to end-1 that are homed at a node, or all
// of them (NoNode), in order, until that returns false. What goes wrong is the last that
// do is called with, as a *godwit.OpError. It is for the worker's goroutine; do may begin
// other scans.
func (s *Scans) Each(ctx context.Context, first, end godwit.Key, home godwit.NodeID, do func(godwit.Key, error) bool) {
	m := merge{of: s, first: first, end: end}
	defer m.close()
	err := m.begin(ctx, home)
	for err == nil {
		var k godwit.Key
		if k, err = m.take(ctx); err == nil && (k == end || !do(k, nil)) {
			return
		}
	}
	do(0, m.fail(err))
}

// A merge puts together what the homes say. It belongs to the worker's goroutine.
type merge struct {
	of         *Scans
	first, end godwit.Key
	parts      []*part
	cur        *part      // whose keys are the next ones,
	until      godwit.Key // … up to here
	peer       godwit.NodeID
}

// A part is what one home says in a scan.
type part struct {
	home   godwit.NodeID
	op     uint64
	asked  *protocol.Scan // under the lock; nil: this node is the home
	coming bool           // an answer will,
	answer chan struct{}  // … which holds a token when it is complete
	gone   bool           // nobody wants to know any more: it ends with the answer
	keys   []godwit.Key   // that were not taken yet
	own    []godwit.Key   // this node's: memory of keys,
	next   godwit.Key     // … and from where there may be more
}

func (m *merge) fail(err error) error {
	e := &godwit.OpError{Op: "scan", Worker: m.of.worker, Peer: m.peer, First: m.first, Last: m.first, Err: err}
	if m.end > m.first {
		e.Last, e.Keys = m.end-1, int(m.end-m.first)
	}
	return e
}

// begin asks a home, or all, for its first keys.
func (m *merge) begin(ctx context.Context, home godwit.NodeID) error {
	q := m.of.of
	nodes, keys := q.links.Nodes(), q.proto.Model.Keys()
	m.peer = godwit.NoNode
	switch {
	case m.first > m.end || uint64(m.end) > keys:
		return fmt.Errorf("%w: from key %d up to key %d, the model has keys 0 … %d", godwit.ErrKeyRange, m.first, m.end, keys-1)
	case home != godwit.NoNode && int(home) >= nodes:
		return fmt.Errorf("there is no node %d, the run has %d nodes", home, nodes)
	case q.host.Err() != nil:
		return q.host.Err()
	case ctx.Err() != nil:
		return q.host.Late(ctx, context.Cause(ctx))
	}
	defer m.of.out.Flush()
	for i := range nodes {
		if id := godwit.NodeID(i); home == id || home == godwit.NoNode {
			p, err := m.of.begin(id, m.first, m.end)
			if err != nil {
				m.peer = id
				return err
			}
			m.parts = append(m.parts, p)
		}
	}
	return nil
}

// close forgets the parts. Those that an answer is to come to count until then:
// the home may not have come to the question yet.
func (m *merge) close() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	for _, p := range m.parts {
		switch {
		case p.asked == nil:
		case p.coming && len(p.answer) == 0:
			p.gone = true
		default:
			m.of.over(p)
		}
	}
}

// take returns the next key, end after the last.
func (m *merge) take(ctx context.Context) (godwit.Key, error) {
	if m.cur == nil || len(m.cur.keys) == 0 || m.cur.keys[0] >= m.until {
		if err := m.choose(ctx); err != nil || m.cur == nil {
			return m.end, err
		}
	}
	k := m.cur.keys[0]
	m.cur.keys = m.cur.keys[1:]
	return k, nil
}

// choose finds the part that has the next key, and up to where it has the next
// ones; none if there is no further key.
func (m *merge) choose(ctx context.Context) error {
	m.cur, m.until = nil, m.end
	least := m.end
	for _, p := range m.parts {
		if err := m.fill(ctx, p); err != nil {
			m.peer = p.home
			return err
		}
		switch {
		case len(p.keys) == 0:
		case p.keys[0] < least:
			m.cur, m.until, least = p, least, p.keys[0]
		default:
			m.until = min(m.until, p.keys[0])
		}
	}
	return nil
}

// fill sees that a part has its next keys, if there are any.
func (m *merge) fill(ctx context.Context, p *part) error {
	for len(p.keys) == 0 {
		if p.asked == nil {
			if p.next == m.end {
				return nil
			}
			p.own = p.own[:0]
			p.next = m.of.of.proto.Used(p.next, m.end, func(k godwit.Key) { p.own = append(p.own, k) })
			p.keys = p.own
			continue
		}
		if !p.coming {
			return nil
		}
		if err := m.of.answered(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
