package node

import (
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// An answer to a scan's question may be long, and questions are short. So they
// are answered while there is room in the queue to who asks, and wait for it
// else, of one node at most as many as its workers may ask.

// questions are those that wait, by node, in the order in which they came.
type questions struct {
	mu   preempt.Mutex
	of   [][]wire.Record
	some atomic.Bool
}

// scan answers a scan's question, or leaves it to the pacer.
func (n *Node) scan(in *inbound, from godwit.NodeID, r *wire.Record) error {
	in.out.LetGo() // questions have a lock of their own
	room := n.links.To(from).Room(n.links.Limits.Answers)
	q := &n.questions
	q.mu.Lock()
	waiting := len(q.of[from])
	if waiting == 0 && room {
		q.mu.Unlock()
		return n.proto.Scan(&in.out, from, r)
	}
	defer q.mu.Unlock()
	if waiting >= maxScans {
		return fmt.Errorf("%d scans of its workers wait here until it takes what it was sent, and it asks for more: no node may", waiting)
	}
	q.of[from] = append(q.of[from], *r)
	q.some.Store(true)
	n.pacer.bell.Ring()
	return nil
}

// next takes a node's oldest question out.
func (q *questions) next(from godwit.NodeID) (r wire.Record, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.of[from]) == 0 {
		return r, false
	}
	r = q.of[from][0]
	if q.of[from] = q.of[from][1:]; len(q.of[from]) == 0 {
		q.of[from] = nil
	}
	return r, true
}

// answers has the questions answered that there is room for by now, and reports
// whether others have to stay.
func (p *pacer) answers() (held bool) {
	q := &p.n.questions
	if !q.some.Swap(false) {
		return false
	}
	for i, o := range p.n.links.All {
		if !p.answer(i, o) {
			held = true
		}
	}
	if held {
		q.some.Store(true)
	}
	return held
}

// answer has a node's questions answered, and reports whether there was room.
func (p *pacer) answer(from godwit.NodeID, o *link.Link) bool {
	for o.Room(p.n.links.Limits.Answers) {
		r, ok := p.n.questions.next(from)
		if !ok {
			return true
		}
		if err := p.n.proto.Scan(&p.out, from, &r); err != nil {
			p.n.end(from, brokeProtocol, err)
			return true
		}
	}
	return false
}
