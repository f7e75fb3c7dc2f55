// Package mem is a transport within one process.
//
// A [Switch] is the network; addresses are the names under which listeners
// were made. Frames are copied, as they would be by a socket, so that the two
// sides share no memory.
package mem

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// backlog bounds the dialers that wait for one listener to accept them; more
// wait for a place.
const backlog = 64

// defaultTimeout is how long Dial waits to be accepted.
const defaultTimeout = 10 * time.Second

// A Switch is a network of names. The zero Switch is ready to use.
type Switch struct {
	timeout time.Duration // 0: defaultTimeout

	mu        sync.Mutex
	listeners map[string]*listener // those that are open
}

// Listen begins to take connections at addr, any name that is not empty. The error
// wraps syscall.EADDRINUSE if another listener has the name.
func (s *Switch) Listen(addr string) (transport.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case addr == "":
		return nil, errors.New("mem: listen: the address is empty, want a name")
	case s.listeners[addr] != nil:
		return nil, fmt.Errorf("mem: listen at %q: %w", addr, syscall.EADDRINUSE)
	case s.listeners == nil:
		s.listeners = map[string]*listener{}
	}
	l := &listener{sw: s, addr: addr, calls: make(chan *call, backlog), done: make(chan struct{})}
	s.listeners[addr] = l
	return l, nil
}

// Dial connects to the listener of that name.
func (s *Switch) Dial(ctx context.Context, addr string, hello transport.Hello, secret []byte) (transport.Conn, error) {
	if err := check(hello, secret); err != nil {
		return nil, fmt.Errorf("mem: dial %q: %w", addr, err)
	}
	c, err := s.dial(ctx, addr, hello, secret)
	if err != nil {
		return nil, &transport.DialError{Network: "mem", Addr: addr, Err: err}
	}
	return c, nil
}

// check refuses what would not go over a wire.
func check(hello transport.Hello, secret []byte) error {
	if err := transport.CheckSecret(secret); err != nil {
		return err
	}
	_, err := wire.AppendHello(nil, hello)
	return err
}

var (
	errNobody   = errors.New("nobody listens there")
	errClosed   = errors.New("the listener was closed")
	errUnproved = errors.New("it is no node of this run")
)

func (s *Switch) dial(ctx context.Context, addr string, hello transport.Hello, secret []byte) (*conn, error) {
	s.mu.Lock()
	l := s.listeners[addr]
	s.mu.Unlock()
	if l == nil {
		return nil, errNobody
	}
	timeout := s.timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not accepted within %v", timeout))
	defer cancel()
	c := &call{hello: hello, secret: secret, answer: make(chan answer, 1)}
	select {
	case l.calls <- c:
	case <-l.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var err error
	select {
	case a := <-c.answer:
		return a.conn, a.err
	case <-l.done:
		err = errClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if c.settled.CompareAndSwap(false, true) {
		return nil, err
	}
	a := <-c.answer // at the last moment
	return a.conn, a.err
}

// A call is one Dial that waits for its Accept.
type call struct {
	hello   transport.Hello
	secret  []byte
	settled atomic.Bool // set by the one of Dial and Accept that decides: given up, or answered
	answer  chan answer
}

// An answer is the dialer's end, or why there is none.
type answer struct {
	conn *conn
	err  error
}

type listener struct {
	sw    *Switch
	addr  string
	calls chan *call
	done  chan struct{} // closed by Close, which the switch's lock makes happen once
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Accept(ctx context.Context, self transport.Hello, secret []byte) (transport.Conn, error) {
	if err := check(self, secret); err != nil {
		return nil, fmt.Errorf("mem: accept at %q: %w", l.addr, err)
	}
	for {
		select { // a closed listener accepts nobody, whoever waits
		case <-l.done:
			return nil, fmt.Errorf("mem: accept at %q: %w", l.addr, godwit.ErrClosed)
		default:
		}
		select {
		case c := <-l.calls:
			switch {
			case !c.settled.CompareAndSwap(false, true):
			case subtle.ConstantTimeCompare(c.secret, secret) == 0:
				c.answer <- answer{err: errUnproved}
			default:
				self.To = c.hello.From
				up, down := newQueue(), newQueue()
				c.answer <- answer{conn: &conn{in: down, out: up, peer: self}}
				return &conn{in: up, out: down, peer: c.hello}, nil
			}
		case <-l.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("mem: accept at %q: %w", l.addr, context.Cause(ctx))
		}
	}
}

func (l *listener) Close() error {
	l.sw.mu.Lock()
	defer l.sw.mu.Unlock()
	if l.sw.listeners[l.addr] == l {
		delete(l.sw.listeners, l.addr)
		close(l.done)
	}
	return nil
}
