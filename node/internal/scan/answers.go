package scan

import (
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// Answers are what a node says to the scans of others. Questions that there is no room
// for an answer to wait, of one node at most as many as its workers may ask.
type Answers struct {
	proto  *protocol.Config
	links  *link.Links
	rounds *host.Bell                          // rings when a question waits
	broke  func(peer godwit.NodeID, err error) // ends the run

	mu   preempt.Mutex
	of   [][]wire.Record // questions that wait, by node, in the order in which they came
	some atomic.Bool
}

// NewAnswers returns those of a node. The bell is that of the sync rounds, which call
// Round. Broke ends the run because a peer asked for what cannot be.
func NewAnswers(c *protocol.Config, ls *link.Links, rounds *host.Bell, broke func(peer godwit.NodeID, err error)) *Answers {
	return &Answers{proto: c, links: ls, rounds: rounds, broke: broke, of: make([][]wire.Record, ls.Nodes())}
}

// Asked answers a node's question, or leaves it to a round.
func (a *Answers) Asked(out *link.Sender, from godwit.NodeID, r *wire.Record) error {
	out.LetGo() // questions have a lock of their own
	room := a.links.To(from).Room(a.links.Limits.Answers)
	a.mu.Lock()
	waiting := len(a.of[from])
	if waiting == 0 && room {
		a.mu.Unlock()
		return a.proto.Scan(out, from, r)
	}
	defer a.mu.Unlock()
	if waiting >= most {
		return fmt.Errorf("%d scans of its workers wait here until it takes what it was sent, and it asks for more: no node may", waiting)
	}
	a.of[from] = append(a.of[from], *r)
	a.some.Store(true)
	a.rounds.Ring()
	return nil
}

// next takes a node's oldest question out.
func (a *Answers) next(from godwit.NodeID) (r wire.Record, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.of[from]) == 0 {
		return r, false
	}
	r = a.of[from][0]
	if a.of[from] = a.of[from][1:]; len(a.of[from]) == 0 {
		a.of[from] = nil
	}
	return r, true
}

// Open does nothing: questions are answered at the end of a round.
func (a *Answers) Open(*link.Sender) (press bool) { return false }

// Urgent reports false: who asks in a scan waits for no round.
func (a *Answers) Urgent() bool { return false }

// Close ends a round: it has the questions answered that there is room for by now, and
// reports whether others have to stay. It is for the goroutine of the rounds.
func (a *Answers) Close(out *link.Sender, _, _ bool) (more bool) {
	if !a.some.Swap(false) {
		return false
	}
	for id, l := range a.links.All {
		if !a.answer(out, id, l) {
			more = true
		}
	}
	if more {
		a.some.Store(true)
	}
	return more
}

// answer has a node's questions answered, and reports whether there was room.
func (a *Answers) answer(out *link.Sender, from godwit.NodeID, l *link.Link) bool {
	for l.Room(a.links.Limits.Answers) {
		r, ok := a.next(from)
		if !ok {
			return true
		}
		if err := a.proto.Scan(out, from, &r); err != nil {
			a.broke(from, err)
			return true
		}
	}
	return false
}
