package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Bounds on the pending connections of a listener, each of which takes a goroutine
// and a socket. They are far more than the members of a run that dial at the same
// time, unless these are very many; then some dial again.
const (
	maxPending   = 512 // in all
	maxPerOrigin = 256 // from one origin
)

// errDisplaced is why a pending connection is dropped that has done nothing wrong.
var errDisplaced = errors.New("it had not proved to be a member when others came")

// A pendingSet holds the connections of a listener whose dialers have not proved yet
// to be members of the run.
type pendingSet struct {
	mu    sync.Mutex
	from  map[netip.Prefix][]*pendingConn // the oldest first
	count int
}

// A pendingConn is one connection of a pendingSet, until it is removed.
type pendingConn struct {
	from netip.Prefix
	drop context.CancelCauseFunc // ends its handshake
	gone chan struct{}           // closed when it was removed
}

// add adds a connection. While there is no room, the oldest one of the origin that
// has the most is dropped; the wait for it is short.
func (w *pendingSet) add(from netip.Prefix, drop context.CancelCauseFunc) *pendingConn {
	s := &pendingConn{from: from, drop: drop, gone: make(chan struct{})}
	for {
		w.mu.Lock()
		var oldest *pendingConn
		switch {
		case len(w.from[from]) >= maxPerOrigin:
			oldest = w.from[from][0]
		case w.count >= maxPending:
			oldest = w.oldest()
		default:
			if w.from == nil {
				w.from = map[netip.Prefix][]*pendingConn{}
			}
			w.from[from] = append(w.from[from], s)
			w.count++
			w.mu.Unlock()
			return s
		}
		oldest.drop(errDisplaced)
		w.mu.Unlock()
		<-oldest.gone
	}
}

// remove removes a connection, which may have been removed before.
func (w *pendingSet) remove(s *pendingConn) {
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

// dropOldest drops the oldest connection of the origin that has the most, and reports
// whether there was one.
func (w *pendingSet) dropOldest() bool {
	w.mu.Lock()
	oldest := w.oldest()
	if oldest != nil {
		oldest.drop(errDisplaced)
	}
	w.mu.Unlock()
	if oldest == nil {
		return false
	}
	<-oldest.gone
	return true
}

// oldest returns the oldest connection of the origin that has the most, nil if there
// is none. The caller holds the lock.
func (w *pendingSet) oldest() *pendingConn {
	var most []*pendingConn
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

// origin is what connections are counted by: the remote address, or its /64 network
// for IPv6, since whoever has one such address has 2⁶⁴.
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
