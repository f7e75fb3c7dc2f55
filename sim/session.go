package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A session is a node's membership: a coordinator without a process, whose word
// reaches the nodes after two ways of the network.
type session struct {
	c        *Cluster
	h        *host
	stopping chan struct{}
	reason   string
	done     chan struct{}
	err      error // set before done is closed
	turns    map[string]uint64
	busy     map[string]bool
}

var _ coord.Session = (*session)(nil)

func newSession(c *Cluster, h *host) *session {
	return &session{c: c, h: h, stopping: make(chan struct{}), done: make(chan struct{}), turns: map[string]uint64{}, busy: map[string]bool{}}
}

// A place is one use of a barrier or exchange.
type place struct {
	name string
	turn uint64
}

type gathering struct {
	payloads [][]byte
	missing  int
	heard    int             // nodes that went on
	settled  []chan struct{} // by node: closed when it has heard that all are there
}

func (s *session) Self() godwit.NodeID  { return s.h.id }
func (s *session) View() godwit.View    { return 1 }
func (s *session) Lease() time.Duration { return coord.DefaultTTL }

func (s *session) Members() []coord.Member {
	ms := make([]coord.Member, len(s.c.hosts))
	for i := range ms {
		ms[i] = coord.Member{ID: godwit.NodeID(i), Addr: fmt.Sprintf("simulated-%d", i), Incarnation: uint64(i) + 1}
	}
	return ms
}

// Secret is one that only clusters of the same seed and size have in common: the
// same run again must be the same.
func (s *session) Secret() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "simulated run of %d nodes, seed %d", len(s.c.hosts), s.c.cfg.Seed))
	return sum[:]
}

func (s *session) Barrier(ctx context.Context, name string) error {
	_, err := s.gather(ctx, "barrier "+name, nil)
	return err
}

func (s *session) Exchange(ctx context.Context, name string, payload []byte) ([][]byte, error) {
	if len(payload) > coord.MaxPayload {
		return nil, fmt.Errorf("exchange %q: a payload of %d bytes, want at most %d", name, len(payload), coord.MaxPayload)
	}
	all, err := s.gather(ctx, "exchange "+name, payload)
	if err != nil {
		return nil, err
	}
	own := make([][]byte, len(all))
	for i, p := range all {
		own[i] = append([]byte{}, p...)
	}
	return own, nil
}

func (s *session) gather(ctx context.Context, name string, payload []byte) ([][]byte, error) {
	if s.err != nil {
		return nil, fmt.Errorf("%s: %w", name, s.err)
	}
	if s.busy[name] {
		return nil, fmt.Errorf("%s: another call of this node waits for it: give concurrent calls different names", name)
	}
	s.busy[name] = true
	defer func() { s.busy[name] = false }()
	at := place{name, s.turns[name]}
	g := s.c.places[at]
	if g == nil {
		n := len(s.c.hosts)
		g = &gathering{payloads: make([][]byte, n), missing: n}
		for range n {
			g.settled = append(g.settled, make(chan struct{}))
		}
		s.c.places[at] = g
	}
	if g.payloads[s.h.id] == nil {
		g.payloads[s.h.id] = append([]byte{}, payload...)
		if g.missing--; g.missing == 0 {
			for _, h := range s.c.hosts {
				s.c.tell(h, func() { close(g.settled[h.id]) })
			}
		}
	}
	switch (world{s.c, s.h}).Wait(g.settled[s.h.id], s.done, ctx.Done()) {
	case 1:
		return nil, fmt.Errorf("%s: %w", name, s.err)
	case 2:
		return nil, fmt.Errorf("%s: %d of %d nodes did not arrive: %w", name, g.missing, len(s.c.hosts), context.Cause(ctx))
	}
	s.turns[name]++
	if g.heard++; g.heard == len(s.c.hosts) {
		delete(s.c.places, at)
	}
	return g.payloads, nil
}

// tell lets a node hear something from the coordinator.
func (c *Cluster) tell(h *host, what func()) {
	c.queue.push(event{at: c.now + 2*int64(c.cfg.Network.Latency), kind: tells, host: h.id, tell: what})
}

func (s *session) RequestStop(_ context.Context, reason string) error {
	for _, h := range s.c.hosts {
		s.c.tell(h, func() {
			if o := h.session; o.reason == "" {
				o.reason = reason
				close(o.stopping)
			}
		})
	}
	return nil
}

func (s *session) Stopping() <-chan struct{} { return s.stopping }
func (s *session) StopReason() string        { return s.reason }

// Cause implements coord.Session: this coordinator is always there.
func (s *session) Cause(lost *coord.MemberError) error { return lost }

func (s *session) Fail(err error) {
	var partition *coord.PartitionError
	var lost *coord.MemberError
	switch {
	case errors.As(err, &partition):
		err = partition
	case errors.As(err, &lost) && errors.Is(lost, godwit.ErrPeerLost):
		err = lost
	default:
		err = &coord.MemberError{Member: s.Members()[s.h.id], Err: fmt.Errorf("%w: %w", coord.ErrFailed, err)}
	}
	s.end(err)
	for _, h := range s.c.hosts {
		s.c.tell(h, func() { h.session.end(err) })
	}
}

func (s *session) end(err error) {
	if s.err == nil {
		s.err = err
		close(s.done)
	}
}

func (s *session) Done() <-chan struct{} { return s.done }
func (s *session) Err() error            { return s.err }

func (s *session) Close(context.Context) error {
	s.end(godwit.ErrClosed)
	return nil
}
