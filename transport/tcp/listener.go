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
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/wire"
)

// maxStrangers bounds the connections that were not accepted yet; more wait in
// the kernel.
const maxStrangers = 64

// A listener greets strangers, each in a goroutine of its own, and hands those
// who said a hello to Accept.
type listener struct {
	nw      Network
	ln      net.Listener
	greeted chan *conn    // to Accept; unbuffered, who waits is still watched by its greet
	places  chan struct{} // one element for each stranger
	ctx     context.Context
	cancel  context.CancelFunc // ends the goroutines
	wg      sync.WaitGroup     // the goroutines
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
	l := &listener{nw: n, ln: ln, greeted: make(chan *conn), places: make(chan struct{}, maxStrangers)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
	return l, nil
}

func (l *listener) Addr() string { return l.ln.Addr().String() }

// run takes connections from the kernel until the listener is closed.
func (l *listener) run() {
	for {
		select {
		case l.places <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		raw, err := l.ln.Accept()
		if err == nil {
			l.wg.Go(func() { l.greet(raw) })
			continue
		}
		<-l.places
		// Short of Close, errors pass: a connection that broke while it
		// waited, or no file descriptor left.
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// greet hears one stranger out and waits for Accept to take him.
func (l *listener) greet(raw net.Conn) {
	defer func() { <-l.places }()
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.nw.wait(), errors.New("it did not become a peer in time"))
	defer cancel()
	stop := closeWith(ctx, raw)
	c, err := l.hear(ctx, raw)
	// What waits for Accept is let go of before Accept has it: from then on a
	// listener that closes must not close it.
	if stopped := stop(); err == nil && stopped {
		select {
		case l.greeted <- c:
			return
		case <-ctx.Done():
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	raw.Close()
	if l.nw.Dropped != nil {
		l.nw.Dropped(raw.RemoteAddr().String(), errorOf(ctx, err))
	}
}

// hear reads the hello of a stranger.
func (l *listener) hear(ctx context.Context, raw net.Conn) (*conn, error) {
	stream := raw
	if l.nw.TLS != nil {
		t := tls.Server(raw, l.nw.TLS)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		stream = t
	}
	c := newConn(stream)
	err := c.readHello()
	if is[*wire.VersionError](err) {
		// Any frame of ours tells the other side which version this is.
		if frame, err := wire.AppendHello(nil, wire.Hello{From: godwit.NoNode, To: godwit.NoNode}); err == nil {
			stream.Write(frame)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *listener) Accept(ctx context.Context, self wire.Hello) (transport.Conn, error) {
	for {
		select {
		case c := <-l.greeted:
			self.To = c.peer.From
			frame, err := wire.AppendHello(nil, self)
			if err != nil {
				c.Close()
				return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), err)
			}
			if err := c.answer(frame, l.nw.wait()); err != nil {
				c.Close()
				if l.nw.Dropped != nil {
					l.nw.Dropped(c.stream.RemoteAddr().String(), err)
				}
				continue
			}
			return c, nil
		case <-l.ctx.Done():
			return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), godwit.ErrClosed)
		case <-ctx.Done():
			return nil, fmt.Errorf("tcp: accept at %s: %w", l.Addr(), context.Cause(ctx))
		}
	}
}

// answer writes the hello of this side.
func (c *conn) answer(hello []byte, patience time.Duration) error {
	if err := c.stream.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := c.WriteFrame(hello); err != nil {
		return err
	}
	return c.stream.SetWriteDeadline(time.Time{})
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
