// Package tcp is the transport over TCP, and over TLS on TCP.
//
// A frame is written with one system call and small frames are read many at a
// time, so that the cost of a frame is that of a plain exchange of bytes. Small
// frames leave at once (TCP_NODELAY, which Go sets on every connection). The
// sizes of the socket buffers are left to the kernel: a size that is set by
// hand is capped by the system's limit for programs, and stops the kernel from
// growing the buffers beyond it as the connection needs.
//
// # TLS
//
// A [Network] with a TLS configuration encrypts and authenticates; without one
// it does neither and belongs into a network that one trusts. [LoadTLS] makes a
// configuration in which both sides must show a certificate signed by the
// cluster's own authority. A certificate proves that its holder belongs to the
// cluster; it does not prove which node it is.
package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/wire"
)

// defaultPatience is how long a listener gives a stranger to become a peer. A
// dialer gives twice as long, so that a listener does not accept one who has
// just given up.
const defaultPatience = 5 * time.Second

// A Network dials and listens at addresses of the form host:port. The zero
// Network is plain TCP.
type Network struct {
	// TLS, where set, is used on all connections. Dial checks the certificate
	// of the other side against ServerName if that is set, and else against the
	// host that it dials.
	TLS *tls.Config

	// Dropped, where set, is told of everybody who connected to a listener and
	// was dropped: from where, and why. It is called by several goroutines.
	Dropped func(addr string, err error)

	patience time.Duration // 0: defaultPatience
}

func (n Network) wait() time.Duration {
	if n.patience > 0 {
		return n.patience
	}
	return defaultPatience
}

// Dial connects to the listener at addr.
func (n Network) Dial(ctx context.Context, addr string, hello wire.Hello) (transport.Conn, error) {
	c, err := n.dial(ctx, addr, hello)
	if err != nil {
		return nil, fmt.Errorf("tcp: dial %s: %w", addr, err)
	}
	return c, nil
}

func (n Network) dial(ctx context.Context, addr string, hello wire.Hello) (*conn, error) {
	frame, err := wire.AppendHello(nil, hello)
	if err != nil {
		return nil, err
	}
	patience := 2 * n.wait()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, errorOf(ctx, err)
	}
	stop := closeWith(ctx, raw)
	c, err := n.meet(ctx, raw, addr, frame)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, judge(errorOf(ctx, err))
	}
	return c, nil
}

// meet shakes hands over a new connection to addr.
func (n Network) meet(ctx context.Context, raw net.Conn, addr string, hello []byte) (*conn, error) {
	stream := raw
	if n.TLS != nil {
		cfg := n.TLS
		if cfg.ServerName == "" {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			cfg = cfg.Clone()
			cfg.ServerName = host
		}
		t := tls.Client(raw, cfg)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		stream = t
	}
	if _, err := stream.Write(hello); err != nil {
		return nil, err
	}
	c := newConn(stream)
	if err := c.readHello(); err != nil {
		return nil, fmt.Errorf("it answered with no hello: %w", err)
	}
	return c, nil
}

// closeWith makes everything that waits on c fail when ctx ends, until stop is
// called; stop returns false if that has happened.
func closeWith(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}

// errorOf names the end of ctx as the cause of err, where it was.
func errorOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// judge marks the errors of a handshake that another attempt would not mend.
func judge(err error) error {
	var op *net.OpError
	refused := errors.As(err, &op) && op.Op == "remote error" // a TLS alert of the other side
	if refused || is[*tls.CertificateVerificationError](err) || is[*wire.VersionError](err) || is[*wire.FormatError](err) || is[*lengthError](err) {
		return &transport.Mismatch{Err: fmt.Errorf("cannot be talked to: %w", err)}
	}
	return err
}

// is reports whether err is or wraps an error of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
