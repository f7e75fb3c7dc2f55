// Package pending bounds the connections of a listener whose dialers have not proved yet to be members of the run. So
// who connects and says nothing, however often, keeps no member from connecting.
//
// It has no goroutine. Each connection is served by its listener, which adds it before that and removes it when it is
// known whose it is, or has ended.
package pending

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// Bounds on the pending connections of a listener, each of which takes a goroutine
// and a socket. They are far more than the members of a run that dial at the same
// time, unless these are very many; then some dial again.
const (
	Max          = 512 // in all
	MaxPerOrigin = 256 // from one origin
)

// errDisplaced is why a pending connection is dropped that has done nothing wrong.
var errDisplaced = errors.New("it had not proved to be a member when others came")

// A Set holds the pending connections of a listener. The zero value is empty. Its methods may be called by any number of
// goroutines.
type Set struct {
	mu    sync.Mutex
	from  map[netip.Prefix][]*Conn // the oldest first
	count int
}

// A Conn is one connection of a Set, until it is removed.
type Conn struct {
	from netip.Prefix
	drop context.CancelCauseFunc // ends its handshake
	gone chan struct{}           // closed when it was removed
}

// Add adds a connection from an address. While there is no room, the oldest one of the origin that
// has the most is dropped, by the function that came with it; whoever serves that one is to remove it then, for which Add waits.
// drop must not wait, nor call the set.
func (w *Set) Add(from net.Addr, drop context.CancelCauseFunc) *Conn {
	s := &Conn{from: origin(from), drop: drop, gone: make(chan struct{})}
	for {
		w.mu.Lock()
		var oldest *Conn
		switch {
		case len(w.from[s.from]) >= MaxPerOrigin:
			oldest = w.from[s.from][0]
		case w.count >= Max:
			oldest = w.oldest()
		default:
			if w.from == nil {
				w.from = map[netip.Prefix][]*Conn{}
			}
			w.from[s.from] = append(w.from[s.from], s)
			w.count++
			w.mu.Unlock()
			return s
		}
		oldest.drop(errDisplaced)
		w.mu.Unlock()
		<-oldest.gone
	}
}

// Remove removes a connection, which may have been removed before.
func (w *Set) Remove(s *Conn) {
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

// Relieve is told of an error of Accept. If the process has too many files open, it drops the oldest connection of the origin that has the most, waits
// until it was removed, and reports whether there was one: there is a file descriptor again then.
func (w *Set) Relieve(err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
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

// Len returns how many connections there are.
func (w *Set) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// oldest returns the oldest connection of the origin that has the most, nil if there
// is none. The caller holds the lock.
func (w *Set) oldest() *Conn {
	var most []*Conn
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
