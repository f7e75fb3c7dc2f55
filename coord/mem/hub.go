// Package mem is the coordinator of a run whose nodes are all in one process.
//
// It starts no goroutine and no timer and reads no clock, so that it can be
// used under simulated time: the only waits that end by time are those whose
// context does. A node is lost only by [Hub.Kill].
package mem

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// A Hub coordinates the runs of one name, one after the other. Its methods may
// be called by any number of goroutines.
type Hub struct {
	cfg coord.Config

	mu          sync.Mutex // held while a message goes to all, which makes the one order
	incarnation uint64
	waiting     []*applicant // by id; nil: free. Invariant: some are nil, or none waits
	run         []*session   // the sealed run by id, nil for who is gone; empty: none
}

// An applicant is a node that waits for the others.
type applicant struct {
	registration ledger.Registration
	roster       *ledger.Roster // as changed since it came
	ready        chan struct{}  // closed when session or err is set
	session      *session
	err          error
}

// New returns the hub of a run. Of cfg it uses Run, Nodes and
// Fingerprint, and TTL, which sessions report and the hub does not keep to.
func New(cfg coord.Config) (*Hub, error) {
	if cfg.Addr == "" {
		cfg.Addr = "hub" // each node gives its own
	}
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	return &Hub{cfg: cfg, waiting: make([]*applicant, cfg.Nodes)}, nil
}

// Join makes the caller a node whose data plane is at addr, and returns when
// all nodes are there. Only ctx bounds the wait.
func (h *Hub) Join(ctx context.Context, addr string) (coord.Session, error) {
	cfg := h.cfg
	cfg.Addr = addr
	return h.JoinConfig(ctx, cfg)
}

// JoinConfig is Join for a node that comes with a configuration of its own,
// which may differ from the hub's and then is refused. Its TTL and Join have no
// effect.
func (h *Hub) JoinConfig(ctx context.Context, cfg coord.Config) (coord.Session, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	if cfg.Run != h.cfg.Run {
		return nil, fmt.Errorf("coord: this hub coordinates run %q, not %q", h.cfg.Run, cfg.Run)
	}
	if cfg.Nodes != h.cfg.Nodes {
		return nil, fmt.Errorf("coord: run %q: %w: the hub has %d nodes, %s has %d", cfg.Run, coord.ErrMismatch, h.cfg.Nodes, cfg.Addr, cfg.Nodes)
	}
	a := &applicant{registration: ledger.NewRegistration(cfg), roster: ledger.NewRoster(cfg), ready: make(chan struct{})}
	if err := h.register(a); err != nil {
		return nil, err
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
		return h.withdraw(a, context.Cause(ctx))
	}
	return a.result()
}

func (a *applicant) result() (coord.Session, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.session, nil
}

// register gives the applicant an id and seals the run if it was the last.
func (h *Hub) register(a *applicant) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.run) > 0 {
		for id, s := range h.run {
			if s != nil {
				a.roster.Put(godwit.NodeID(id), ledger.Registration{Addr: s.Members()[id].Addr})
			}
		}
		return a.roster.Complete()
	}
	for id, w := range h.waiting {
		if w != nil {
			a.roster.Put(godwit.NodeID(id), w.registration)
		}
	}
	self, _ := a.roster.Free() // if none were free, the run would be sealed
	h.incarnation++
	a.registration.Incarnation = h.incarnation
	h.waiting[self] = a
	for _, w := range h.waiting {
		if w != nil {
			w.roster.Put(self, a.registration)
		}
	}
	if a.roster.Mismatch(self) != nil {
		h.refuseLocked()
		return nil
	}
	if _, free := a.roster.Free(); !free {
		h.sealLocked(a.roster.Members())
	}
	return nil
}

// withdraw frees the applicant's id, unless the run was sealed meanwhile.
func (h *Hub) withdraw(a *applicant, cause error) (coord.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.session != nil || a.err != nil {
		return a.result()
	}
	self := slices.Index(h.waiting, a)
	h.waiting[self] = nil
	for _, w := range h.waiting {
		if w != nil {
			w.roster.Remove(godwit.NodeID(self))
		}
	}
	return nil, a.roster.Missing("", cause)
}

// refuseLocked ends the wait of all, because the newest differs from them.
func (h *Hub) refuseLocked() {
	for id, a := range h.waiting {
		if a != nil {
			a.err = a.roster.Mismatch(godwit.NodeID(id))
			close(a.ready)
		}
	}
	clear(h.waiting)
}

func (h *Hub) sealLocked(members []coord.Member) {
	h.run = make([]*session, len(members))
	for id, a := range h.waiting {
		s := &session{hub: h}
		s.Ledger = ledger.New(godwit.NodeID(id), members, a.roster.Secret(), h.cfg.TTL, s.publish)
		h.run[id] = s
		a.session = s
		close(a.ready)
	}
	clear(h.waiting)
}

// Kill makes the member a lost one, as if its machine had gone dark: its own
// session and all others are Done. It reports whether there was such a member
// in a sealed run.
func (h *Hub) Kill(id godwit.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if int(id) >= len(h.run) || h.run[id] == nil {
		return false
	}
	victim := h.run[id]
	for _, s := range h.run {
		if s != nil {
			s.Lost(id, "killed")
		}
	}
	h.removeLocked(victim)
	return true
}

// removeLocked frees the session's place; the last one ends the run.
func (h *Hub) removeLocked(s *session) {
	left := 0
	for id := range h.run {
		if h.run[id] == s {
			h.run[id] = nil
		}
		if h.run[id] != nil {
			left++
		}
	}
	if left == 0 {
		h.run = nil
	}
}
