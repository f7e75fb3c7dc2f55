package sim

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A kind says what an event does.
type kind uint8

const (
	wakes   kind = iota // a coroutine goes on: its pause is over, or it begins
	leaves              // a node has handed a frame to its interface
	sends               // a frame has left, and the next one to its peer is taken
	arrives             // a frame reaches the interface of its receiver
	comes               // the interface has all of it
	handles             // the server has worked on a frame
	tells               // a node hears from the coordinator
)

// An event is something that happens at a moment of virtual time.
type event struct {
	at    int64
	seq   uint64 // of two at one time the one that was planned first is first
	kind  kind
	host  godwit.NodeID
	peer  godwit.NodeID // sends
	coro  *coro         // wakes
	pause uint64        // wakes: the pause that is over
	frame *frame        // leaves, arrives, comes, handles
	tell  func()        // tells
	idle  bool          // wakes who only looks whether other nodes live
}

// A queue holds events, earliest first: a heap of four children a node, which
// are close together in memory.
type queue struct {
	events []event
	seq    uint64
	urgent int // events that are not idle
}

// life reports whether an event is only about whether nodes live: one that is idle,
// or what follows from it.
func (e *event) life() bool {
	switch e.kind {
	case sends: // what is sent arrives
		return true
	case leaves, arrives, comes, handles:
		return wire.IsHeartbeat(e.frame.bytes)
	}
	return e.idle
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	if !e.idle {
		q.urgent++
	}
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&q.events[up]) {
			break
		}
		q.events[i] = q.events[up]
		i = up
	}
	q.events[i] = e
}

// pop takes the first event. The queue must not be empty.
func (q *queue) pop() event {
	first := q.events[0]
	if !first.idle {
		q.urgent--
	}
	n := len(q.events) - 1
	last := q.events[n]
	q.events[n] = event{}
	q.events = q.events[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if q.events[c].before(&q.events[least]) {
				least = c
			}
		}
		if !q.events[least].before(&last) {
			break
		}
		q.events[i] = q.events[least]
		i = least
	}
	q.events[i] = last
	return first
}
