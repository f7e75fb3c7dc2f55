package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/node"
)

// An Ask asks the node of the hub, as [node.Node.Ask] does.
type Ask func(question []byte, deliver func(answer []byte)) (wait func(context.Context) error)

// again is when a question is asked again.
const again = 2 * time.Millisecond

// once asks once.
func (a Ask) once(ctx context.Context, q []byte) ([]byte, error) {
	var answer []byte // deliver's, unless wait returns nil: after an error an answer may still come
	if err := a(q, func(b []byte) { answer = append(answer[:0], b...) })(ctx); err != nil {
		return nil, err
	}
	switch {
	case len(answer) == 0:
		return nil, errors.New("relay: an empty answer")
	case answer[0] == bad:
		return nil, errors.New(string(answer[1:]))
	}
	return answer, nil
}

// ask asks until the answer is not to wait.
func (a Ask) ask(ctx context.Context, q []byte) ([]byte, error) {
	for {
		answer, err := a.once(ctx, q)
		if err != nil || answer[0] != wait {
			return answer, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A Sender sends rows of a cut to the hub. It belongs to one goroutine.
type Sender struct {
	ctx    context.Context
	ask    Ask
	cut    uint64
	widths []int
	held   rows // not sent yet
}

// sendBytes are sent at once, about.
const sendBytes = 256 << 10

// NewSender returns a Sender of a cut.
func NewSender(ctx context.Context, a Ask, cut uint64, widths []int) *Sender {
	return &Sender{ctx: ctx, ask: a, cut: cut, widths: widths}
}

// Write is a [node.Sink].
func (s *Sender) Write(table int, rs []uint64, floats []float32) error {
	if table != s.held.table {
		if err := s.flush(); err != nil {
			return err
		}
	}
	h := &s.held
	h.table, h.rows, h.floats = table, append(h.rows, rs...), append(h.floats, floats...)
	if 8*len(h.rows)+4*len(h.floats) < sendBytes {
		return nil
	}
	return s.flush()
}

func (s *Sender) flush() error {
	h := &s.held
	err := split(h.table, h.rows, h.floats, s.widths[h.table], func(r *rows) error { return s.say(rowsCome, r.append(nil)) })
	h.rows, h.floats = h.rows[:0], h.floats[:0]
	return err
}

// say sends rows, or their end. If the hub has no room, it waits for some, and sends them again.
func (s *Sender) say(k kind, rest []byte) error {
	q := question(k, s.cut, rest)
	a, err := s.ask.once(s.ctx, q)
	for err == nil && a[0] == wait {
		if a, err = s.ask.ask(s.ctx, question(roomNext, s.cut, nil)); err == nil && a[0] == done {
			a, err = s.ask.once(s.ctx, q)
		}
	}
	if err == nil && a[0] == over {
		err = fmt.Errorf("relay: node 0 takes no more rows of cut %d", s.cut)
	}
	return err
}

// Close sends what is left, and that there is no more, or the error because of which there is not. It returns that error, or its own.
func (s *Sender) Close(err error) error {
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		_ = s.say(rowsFail, []byte(err.Error())) // the hub hears of it by its own context else
		return err
	}
	return s.say(rowsEnd, nil)
}

// Receive hands the rows to sink that the hub has for this node.
func Receive(ctx context.Context, a Ask, widths []int, sink node.Sink) error {
	for {
		answer, err := a.ask(ctx, question(rowsNext, 0, nil))
		if err != nil || answer[0] == over {
			return err
		}
		r, err := parseRows(answer[1:], widths)
		if err != nil {
			return err
		}
		if err := sink(r.table, r.rows, r.floats); err != nil {
			return err
		}
	}
}
