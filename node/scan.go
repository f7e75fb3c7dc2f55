package node

import (
	"context"
	"fmt"
	"iter"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
)

// scans are what a worker asks the homes of keys for. The worker's goroutine
// begins and ends them; whoever reads from a home adds what it says.
type scans struct {
	mu   preempt.Mutex
	last uint64
	open map[uint64]*part // by op, which is worker<<48 | number
}

// maxScans is how many scans the workers of a node may have open at one home:
// each has one question there at a time.
const maxScans = 1 << 10

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

func (w *worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		w.enter()
		defer w.leave()
		body := func(k godwit.Key, err error) bool { // which may use the worker
			w.leave()
			defer w.enter()
			return yield(k, err)
		}
		s := scan{w: w, first: first, end: end}
		defer s.close()
		err := s.begin(ctx, home)
		for err == nil {
			var k godwit.Key
			if k, err = s.take(ctx); err == nil && (k == end || !body(k, nil)) {
				return
			}
		}
		body(0, s.fail(err))
	}
}

// A scan merges what the homes say. It belongs to the worker's goroutine.
type scan struct {
	w          *worker
	first, end godwit.Key
	parts      []*part
	cur        *part      // whose keys are the next ones,
	until      godwit.Key // … up to here
	peer       godwit.NodeID
}

func (s *scan) fail(err error) error {
	e := &godwit.OpError{Op: "scan", Worker: s.w.id, Peer: s.peer, First: s.first, Last: s.first, Err: err}
	if s.end > s.first {
		e.Last, e.Keys = s.end-1, int(s.end-s.first)
	}
	return e
}

// begin asks a home, or all, for its first keys.
func (s *scan) begin(ctx context.Context, home godwit.NodeID) error {
	n := s.w.n
	s.peer = godwit.NoNode
	switch {
	case s.first > s.end || uint64(s.end) > n.model.Keys():
		return fmt.Errorf("%w: from key %d up to key %d, the model has keys 0 … %d", godwit.ErrKeyRange, s.first, s.end, n.model.Keys()-1)
	case home != godwit.NoNode && int(home) >= n.links.Nodes():
		return fmt.Errorf("there is no node %d, the run has %d nodes", home, n.links.Nodes())
	case n.Err() != nil:
		return n.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	defer s.w.out.Flush()
	for i := range n.links.Nodes() {
		if id := godwit.NodeID(i); home == id || home == godwit.NoNode {
			p, err := s.w.part(id, s.first, s.end)
			if err != nil {
				s.peer = id
				return err
			}
			s.parts = append(s.parts, p)
		}
	}
	return nil
}

// part opens a home's part of a scan.
func (w *worker) part(home godwit.NodeID, first, end godwit.Key) (*part, error) {
	p := &part{home: home, next: first}
	if home == w.n.self {
		return p, nil
	}
	if w.n.scanning[home].Add(1) > maxScans {
		w.n.scanning[home].Add(-1)
		return nil, fmt.Errorf("%w: this node has %d scans of keys that are homed there; end some first", godwit.ErrFull, maxScans)
	}
	w.scans.mu.Lock()
	defer w.scans.mu.Unlock()
	w.scans.last++
	p.op = uint64(w.id.Local)<<48 | w.scans.last&(1<<48-1)
	p.asked = protocol.NewScan(home, p.op, first, end)
	p.answer = make(chan struct{}, 1)
	if w.scans.open == nil {
		w.scans.open = map[uint64]*part{}
	}
	w.scans.open[p.op] = p
	p.coming = p.asked.Ask(&w.out)
	return p, nil
}

// close forgets the parts. Those that an answer is to come to count until then:
// the home may not have come to the question yet.
func (s *scan) close() {
	s.w.scans.mu.Lock()
	defer s.w.scans.mu.Unlock()
	for _, p := range s.parts {
		switch {
		case p.asked == nil:
		case p.coming && len(p.answer) == 0:
			p.gone = true
		default:
			s.w.over(p)
		}
	}
}

// over ends a part. The lock of the scans is held.
func (w *worker) over(p *part) {
	delete(w.scans.open, p.op)
	w.n.scanning[p.home].Add(-1)
}

// take returns the next key, end after the last.
func (s *scan) take(ctx context.Context) (godwit.Key, error) {
	if s.cur == nil || len(s.cur.keys) == 0 || s.cur.keys[0] >= s.until {
		if err := s.choose(ctx); err != nil || s.cur == nil {
			return s.end, err
		}
	}
	k := s.cur.keys[0]
	s.cur.keys = s.cur.keys[1:]
	return k, nil
}

// choose finds the part that has the next key, and up to where it has the next
// ones; none if there is no further key.
func (s *scan) choose(ctx context.Context) error {
	s.cur, s.until = nil, s.end
	least := s.end
	for _, p := range s.parts {
		if err := s.fill(ctx, p); err != nil {
			s.peer = p.home
			return err
		}
		switch {
		case len(p.keys) == 0:
		case p.keys[0] < least:
			s.cur, s.until, least = p, least, p.keys[0]
		default:
			s.until = min(s.until, p.keys[0])
		}
	}
	return nil
}

// fill sees that a part has its next keys, if there are any.
func (s *scan) fill(ctx context.Context, p *part) error {
	for len(p.keys) == 0 {
		if p.asked == nil {
			if p.next == s.end {
				return nil
			}
			p.own = p.own[:0]
			p.next = s.w.n.proto.Used(p.next, s.end, func(k godwit.Key) { p.own = append(p.own, k) })
			p.keys = p.own
			continue
		}
		if !p.coming {
			return nil
		}
		if err := s.w.answered(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for an answer, and has the one after it sent.
func (w *worker) answered(ctx context.Context, p *part) error {
	switch w.n.Wait(p.answer, ctx.Done(), w.n.Done()) {
	case 1:
		return context.Cause(ctx)
	case 2:
		return w.n.Err()
	}
	w.scans.mu.Lock()
	p.keys = p.asked.Keys()
	p.coming = p.asked.Ask(&w.out)
	w.scans.mu.Unlock()
	w.out.Flush()
	return nil
}

// scanned takes what a home says in a scan.
func (n *Node) scanned(from godwit.NodeID, r *wire.Record) error {
	i := r.Op >> 48
	if i >= uint64(len(n.workers)) {
		return nil
	}
	w := n.workers[i]
	w.scans.mu.Lock()
	defer w.scans.mu.Unlock()
	p := w.scans.open[r.Op]
	if p == nil {
		return nil // nobody asked, as it may be for all that is known here
	}
	last, err := p.asked.Take(n.proto, from, r)
	switch {
	case !last:
	case p.gone:
		w.over(p)
	default:
		p.answer <- struct{}{}
	}
	return err
}
