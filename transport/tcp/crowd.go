package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Bounds on the strangers at a listener, each of whom takes a goroutine and a
// socket. They are far more than the members of a run that dial at the same time,
// unless these are very many; then some dial again.
const (
	maxStrangers = 512 // in all
	maxOfOrigin  = 256 // of one origin
)

// errCrowded is why a stranger is dropped that has said nothing wrong.
var errCrowded = errors.New("it had not proved to be a member when others came")

// A crowd is the strangers at a listener: who has connected and not proved yet to
// be a member of the run.
type crowd struct {
	mu    sync.Mutex
	from  map[netip.Prefix][]*stranger // the oldest first
	count int
}

// A stranger is one of a crowd until it leaves.
type stranger struct {
	from netip.Prefix
	drop context.CancelCauseFunc // has it leave
	gone chan struct{}           // closed when it has left
}

// enter adds a stranger. While there is no room, the oldest one from where most
// are is dropped; the wait for it is short.
func (w *crowd) enter(from netip.Prefix, drop context.CancelCauseFunc) *stranger {
	s := &stranger{from: from, drop: drop, gone: make(chan struct{})}
	for {
		w.mu.Lock()
		var oldest *stranger
		switch {
		case len(w.from[from]) >= maxOfOrigin:
			oldest = w.from[from][0]
		case w.count >= maxStrangers:
			oldest = w.oldest()
		default:
			if w.from == nil {
				w.from = map[netip.Prefix][]*stranger{}
			}
			w.from[from] = append(w.from[from], s)
			w.count++
			w.mu.Unlock()
			return s
		}
		oldest.drop(errCrowded)
		w.mu.Unlock()
		<-oldest.gone
	}
}

// leave removes a stranger, who may have left before.
func (w *crowd) leave(s *stranger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.from[s.from], s)
	if i < 0 {
		return
	}
	w.from[s.from] = slices.Delete(w.from[s.from], i, i+1)
	if len(w.from[s.from]) == 0 {
		delete(w.from, s.from)
	}
	w.count--
	close(s.gone)
}

// shrink drops one stranger, if there is any.
func (w *crowd) shrink() bool {
	w.mu.Lock()
	oldest := w.oldest()
	if oldest != nil {
		oldest.drop(errCrowded)
	}
	w.mu.Unlock()
	if oldest == nil {
		return false
	}
	<-oldest.gone
	return true
}

// oldest returns the oldest stranger from where most are; nil if nobody is there.
// The lock is held.
func (w *crowd) oldest() *stranger {
	var most []*stranger
	for _, of := range w.from {
		if len(of) > len(most) {
			most = of
		}
	}
	if len(most) == 0 {
		return nil
	}
	return most[0]
}

// origin is what counts as one place to come from: an address, or the network of
// an IPv6 one, since who has one such address has 2⁶⁴.
func origin(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := ap.Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // so many there are
	return p
}
