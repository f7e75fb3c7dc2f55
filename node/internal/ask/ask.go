package ask

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// most is how many questions of a node may wait here for somebody to answer them.
const most = 16

// Asks are the questions between this node and others. Any goroutine may use it.
type Asks struct {
	host  *host.Host
	links *link.Links
	fail  func(error) // ends the run

	mu    preempt.Mutex
	last  uint64
	open  map[uint64]*asked // this node's, by number
	early []question        // others', in the order in which they came

	// serving is held while a question is answered: one at a time. It is taken before mu.
	serving preempt.Mutex
	answer  func(node int, question []byte) []byte
}

// asked is a question of this node.
type asked struct {
	to      godwit.NodeID
	deliver func(answer []byte)
	done    chan struct{} // closed when deliver has returned
}

type question struct {
	from godwit.NodeID
	wire.Ask
}

// New returns those of a node. Fail ends the run because of an error of this node.
func New(h *host.Host, ls *link.Links, fail func(error)) *Asks {
	return &Asks{host: h, links: ls, fail: fail, open: map[uint64]*asked{}}
}

// Ask sends a question, of at most wire.MaxAsk bytes, to another node. Deliver is called with
// the answer, by who takes frames: it must not wait, nor keep the answer's memory. The result waits
// until deliver has returned; any number of goroutines may call it.
func (a *Asks) Ask(to godwit.NodeID, text []byte, deliver func(answer []byte)) (wait func(context.Context) error) {
	q := &asked{to: to, deliver: deliver, done: make(chan struct{})}
	a.mu.Lock()
	a.last++
	number := a.last
	a.open[number] = q
	a.mu.Unlock()
	l := a.links.To(to)
	l.Push(wire.Ask{Number: number, Text: text}.Frame())
	l.Flush()
	return func(ctx context.Context) error { return a.await(ctx, q) }
}

func (a *Asks) await(ctx context.Context, q *asked) error {
	switch a.host.Wait(q.done, ctx.Done(), a.host.Done()) {
	case 1:
		return fmt.Errorf("no answer of node %d: %w", q.to, a.host.Late(ctx, context.Cause(ctx)))
	case 2:
		return a.host.Err()
	}
	return nil
}

// Serve has questions answered from now on, one at a time, those included that have come
// already. The function does not wait, and gets memory that it must not keep. With nil, questions
// wait for the next call.
func (a *Asks) Serve(answer func(node int, question []byte) []byte) {
	a.serving.Lock()
	a.answer = answer
	var early []question
	if answer != nil {
		a.mu.Lock()
		early, a.early = a.early, nil
		a.mu.Unlock()
	}
	for _, q := range early {
		a.reply(q)
	}
	a.serving.Unlock()
	for _, q := range early {
		a.links.To(q.from).Flush()
	}
}

// reply answers a question. serving is held. An answer that no frame takes ends the run: who asked waits for one.
func (a *Asks) reply(q question) {
	text := a.answer(int(q.from), q.Text)
	if len(text) > wire.MaxAsk {
		a.fail(fmt.Errorf("the answer to a question of node %d has %d bytes, want at most %d", q.from, len(text), wire.MaxAsk))
		return
	}
	a.links.To(q.from).Answer(wire.Ask{Answer: true, Number: q.Number, Text: text}.Frame())
}

// Came takes a frame of a peer, which leaves it to the caller to have an answer sent
// (link.Link.Flush).
func (a *Asks) Came(from godwit.NodeID, frame []byte) error {
	x, err := wire.ParseAsk(frame)
	switch {
	case err != nil:
		return err
	case x.Answer:
		return a.answered(from, x)
	}
	a.serving.Lock()
	defer a.serving.Unlock()
	if a.answer != nil {
		a.reply(question{from, x})
		return nil
	}
	return a.keep(from, x)
}

// answered hands an answer over.
func (a *Asks) answered(from godwit.NodeID, x wire.Ask) error {
	a.mu.Lock()
	q := a.open[x.Number]
	if q != nil && q.to == from {
		delete(a.open, x.Number)
	}
	a.mu.Unlock()
	if q == nil || q.to != from {
		return fmt.Errorf("answered question %d, which it was not asked", x.Number)
	}
	q.deliver(x.Text)
	close(q.done)
	return nil
}

// keep leaves a question for who will answer it.
func (a *Asks) keep(from godwit.NodeID, x wire.Ask) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, q := range a.early {
		if q.from == from {
			n++
		}
	}
	if n == most {
		return fmt.Errorf("%d questions of it wait here, and it asks for more: no node may", most)
	}
	x.Text = append([]byte(nil), x.Text...)
	a.early = append(a.early, question{from, x})
	return nil
}

// Open returns how many questions of this node have no answer yet.
func (a *Asks) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}
