package scan

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// Questions are what a node's workers ask the homes of keys.
type Questions struct {
	host    *host.Host
	proto   *protocol.Config
	links   *link.Links
	open    []atomic.Int32 // scans that workers have open, by home
	workers []*Scans
}

// most is how many scans the workers of a node may have open at one home: each has one
// question there at a time.
const most = 1 << 10

// NewQuestions returns those of a node.
func NewQuestions(h *host.Host, c *protocol.Config, ls *link.Links) *Questions {
	return &Questions{host: h, proto: c, links: ls, open: make([]atomic.Int32, ls.Nodes())}
}

// Worker makes the scans of a worker, which sends by out. The workers are added in their
// order, before any of them begins.
func (q *Questions) Worker(id godwit.WorkerID, out *link.Sender) *Scans {
	s := &Scans{of: q, worker: id, out: out}
	q.workers = append(q.workers, s)
	return s
}

// Answered takes what a home says in a scan. It has a lock of its own, so whoever calls
// it keeps no link.
func (q *Questions) Answered(from godwit.NodeID, r *wire.Record) error {
	i := r.Op >> 48
	if i >= uint64(len(q.workers)) {
		return nil
	}
	s := q.workers[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open[r.Op]
	if p == nil {
		return nil // nobody asked, as it may be for all that is known here
	}
	last, err := p.asked.Take(q.proto, from, r)
	switch {
	case !last:
	case p.gone:
		s.over(p)
	default:
		p.answer <- struct{}{}
	}
	return err
}

// Scans are those of a worker. Its goroutine begins and ends them; whoever takes frames
// of a home adds what it says.
type Scans struct {
	of     *Questions
	worker godwit.WorkerID
	out    *link.Sender

	mu   preempt.Mutex
	last uint64
	open map[uint64]*part // by op, which is worker<<48 | number
}

// Open returns how many parts of scans are open: for which an answer is to come, or that
// the worker has not ended.
func (s *Scans) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// begin opens a home's part of a scan.
func (s *Scans) begin(home godwit.NodeID, first, end godwit.Key) (*part, error) {
	p := &part{home: home, next: first}
	if home == s.of.links.Self {
		return p, nil
	}
	if s.of.open[home].Add(1) > most {
		s.of.open[home].Add(-1)
		return nil, fmt.Errorf("%w: this node has %d scans of keys that are homed there; end some first", godwit.ErrFull, most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	p.op = uint64(s.worker.Local)<<48 | s.last&(1<<48-1)
	p.asked = protocol.NewScan(home, p.op, first, end)
	p.answer = make(chan struct{}, 1)
	if s.open == nil {
		s.open = map[uint64]*part{}
	}
	s.open[p.op] = p
	p.coming = p.asked.Ask(s.out)
	return p, nil
}

// over ends a part. The lock is held.
func (s *Scans) over(p *part) {
	delete(s.open, p.op)
	s.of.open[p.home].Add(-1)
}

// answered waits for an answer, and has the one after it sent.
func (s *Scans) answered(ctx context.Context, p *part) error {
	h := s.of.host
	switch h.Wait(p.answer, ctx.Done(), h.Done()) {
	case 1:
		return h.Late(ctx, context.Cause(ctx))
	case 2:
		return h.Err()
	}
	s.mu.Lock()
	p.keys = p.asked.Keys()
	p.coming = p.asked.Ask(s.out)
	s.mu.Unlock()
	s.out.Flush()
	return nil
}
