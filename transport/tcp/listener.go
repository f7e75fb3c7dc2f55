package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/pending"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A listener runs the handshake of each new connection in a goroutine of its own, and
// hands those whose dialers proved to be members to Accept.
type listener struct {
	nw      Network
	ln      net.Listener
	pending pending.Set
	proved  chan *conn // to Accept

	ready  chan struct{} // closed by the first Accept, which sets
	once   sync.Once
	self   transport.Hello
	secret []byte

	ctx    context.Context
	cancel context.CancelFunc // ends the goroutines
	wg     sync.WaitGroup     // the goroutines
}

// Listen begins to take connections at addr; port 0 takes any that is free.
func (n Network) Listen(addr string) (transport.Listener, error) {
	if n.TLS != nil && len(n.TLS.Certificates) == 0 && n.TLS.GetCertificate == nil && n.TLS.GetConfigForClient == nil {
		return nil, fmt.Errorf("tcp: listen at %s: the TLS configuration has no certificate", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	l := &listener{nw: n, ln: ln, proved: make(chan *conn), ready: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
	return l, nil
}

func (l *listener) Addr() string { return l.ln.Addr().String() }

// run takes connections from the kernel until the listener is closed.
func (l *listener) run() {
	for {
		raw, err := l.ln.Accept()
		switch {
		case err == nil:
			ctx, drop := context.WithCancelCause(l.ctx)
			s := l.pending.Add(raw.RemoteAddr(), drop)
			l.wg.Go(func() { l.handshake(ctx, raw, drop, s) })
			continue
		case l.pending.Relieve(err):
			continue
		}
		// Short of Close, errors pass, such as that of a connection that broke
		// while it waited.
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// handshake checks the dialer of one connection and, if it is a member, answers and
// waits for Accept to take the connection.
func (l *listener) handshake(ctx context.Context, raw net.Conn, drop context.CancelCauseFunc, s *pending.Conn) {
	c, transcript, err := l.identify(ctx, raw)
	l.pending.Remove(s)
	if err == nil {
		err = l.answer(c, raw, transcript)
	}
	drop(nil)
	if err == nil {
		select {
		case l.proved <- c:
			return
		case <-l.ctx.Done():
			err = godwit.ErrClosed
		}
	}
	raw.Close()
	if l.nw.Dropped != nil {
		l.nw.Dropped(raw.RemoteAddr().String(), err)
	}
}

// identify reads what a dialer sends until it has proved that it is a member. It fails
// when ctx ends or after the timeout. It returns the transcript of the handshake.
func (l *listener) identify(ctx context.Context, raw net.Conn) (*conn, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.nw.wait(), errors.New("it did not become a peer in time"))
	defer cancel()
	stop := closeWith(ctx, raw)
	c, transcript, err := l.readHello(ctx, raw)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, nil, errorOf(ctx, err)
	}
	c.r.enlarge()
	return c, transcript, nil
}

func (l *listener) readHello(ctx context.Context, raw net.Conn) (*conn, []byte, error) {
	stream := raw
	if l.nw.TLS != nil {
		t := tls.Server(raw, l.nw.TLS)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		stream = t
	}
	c := newConn(stream)
	transcript, proof, err := c.readHello()
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if !proves(proof, l.secret, dials, transcript) {
		return nil, nil, errUnproved
	}
	return c, transcript, nil
}

// answer makes the connection with a member. It has time until the listener is
// closed: a dialer that gives up closes the connection, and one that confirms relies
// on it.
func (l *listener) answer(c *conn, raw net.Conn, transcript []byte) error {
	self := l.self
	self.To = c.peer.From
	hello, err := wire.AppendHello(nil, self)
	if err != nil {
		return err
	}
	stop := closeWith(l.ctx, raw)
	err = c.answer(hello, l.secret, transcript)
	// The listener stops owning the connection before Accept has it: from then on a
	// listener that closes must not close it.
	if !stop() {
		return godwit.ErrClosed
	}
	return err
}

func (l *listener) Accept(ctx context.Context, self transport.Hello, secret []byte) (transport.Conn, error) {
	if err := l.identifyAs(self, secret); err != nil {
		return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), err)
	}
	select {
	case c := <-l.proved:
		return c, nil
	case <-l.ctx.Done():
		return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), godwit.ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), context.Cause(ctx))
	}
}

// identifyAs sets what dialers are checked against and answered with, once.
func (l *listener) identifyAs(self transport.Hello, secret []byte) error {
	if err := transport.CheckSecret(secret); err != nil {
		return err
	}
	if _, err := wire.AppendHello(nil, self); err != nil {
		return err
	}
	l.once.Do(func() {
		l.self, l.secret = self, secret
		close(l.ready)
	})
	return nil
}

func (l *listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil // closed before
	}
	return err
}
