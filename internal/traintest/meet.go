package traintest

import (
	"context"
	"fmt"
	"sync"
)

// A barrier lets want callers through together, again and again.
type barrier struct {
	mu   sync.Mutex
	want int
	here int
	open chan struct{} // closed when the last one of this round comes
}

func (b *barrier) wait(ctx context.Context) error {
	b.mu.Lock()
	if b.open == nil {
		b.open = make(chan struct{})
	}
	open := b.open
	if b.here++; b.here == b.want {
		close(open)
		b.open, b.here = nil, 0
	}
	b.mu.Unlock()
	return await(ctx, open)
}

// await returns nil when a channel is closed, even if the context is done too.
func await(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-closed:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// An Exchange lets the nodes of one process hand each other payloads. The zero
// Exchange is not ready for use: see [NewExchange].
//
// They can ask node 0, too.
type Exchange struct {
	nodes  int
	mu     sync.Mutex
	round  *round
	answer func(node int, question []byte) []byte
	early  []func(answer func(int, []byte) []byte) // questions that came before somebody answers them
}

type round struct {
	name     string
	payloads [][]byte
	here     int
	full     chan struct{} // closed when all payloads are there; they do not change then
}

// NewExchange returns the exchange of a run of so many nodes.
func NewExchange(nodes int) *Exchange { return &Exchange{nodes: nodes} }

// Of returns the exchange function of a node, for an environment's Exchange. It
// fails when nodes that meet use different names.
func (e *Exchange) Of(node int) func(context.Context, string, []byte) ([][]byte, error) {
	return func(ctx context.Context, name string, payload []byte) ([][]byte, error) {
		r, err := e.join(node, name, payload)
		if err != nil {
			return nil, err
		}
		if err := await(ctx, r.full); err != nil {
			return nil, err
		}
		return r.payloads, nil
	}
}

func (e *Exchange) join(node int, name string, payload []byte) (*round, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.round == nil {
		e.round = &round{name: name, payloads: make([][]byte, e.nodes), full: make(chan struct{})}
	}
	r := e.round
	if r.name != name {
		return nil, fmt.Errorf("traintest: node %d exchanges %q where others exchange %q", node, name, r.name)
	}
	r.payloads[node] = append([]byte(nil), payload...)
	if r.here++; r.here == e.nodes {
		close(r.full)
		e.round = nil
	}
	return r, nil
}

// Ask returns the function by which a node asks node 0, for an environment's Ask.
func (e *Exchange) Ask(node int) func(question []byte, deliver func([]byte)) func(context.Context) error {
	return func(question []byte, deliver func([]byte)) func(context.Context) error {
		done := make(chan struct{})
		reply := func(answer func(int, []byte) []byte) {
			deliver(answer(node, question))
			close(done)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.answer == nil {
			e.early = append(e.early, reply)
		} else {
			go reply(e.answer)
		}
		return func(ctx context.Context) error { return await(ctx, done) }
	}
}

// Serve has questions answered, for an environment's Serve.
func (e *Exchange) Serve(answer func(node int, question []byte) []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answer = answer; answer == nil {
		return
	}
	for _, reply := range e.early {
		go reply(answer)
	}
	e.early = nil
}
