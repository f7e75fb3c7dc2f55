// Package tcp is the transport over TCP, and over TLS on TCP.
//
// A frame of up to 512 KiB is written with one system call and small frames are read many at a
// time, so that the cost of a frame is that of a plain exchange of bytes. Small
// frames leave at once (TCP_NODELAY, which Go sets on every connection). The
// sizes of the socket buffers are left to the kernel: a size that is set by
// hand is capped by the system's limit for programs, and stops the kernel from
// growing the buffers beyond it as the connection needs.
//
// # TLS
//
// A [Network] with a TLS configuration encrypts and authenticates; without one
// it does neither and belongs into a network that one trusts. [TLSFiles] make a
// configuration in which both sides must show a certificate signed by the
// cluster's own authority. A certificate proves that its holder belongs to the
// cluster; it does not prove which run or node it is of. That is what the
// handshake does (see package transport), with TLS and without: TLS protects what
// is said from who listens to the network or can change what it carries.
package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// defaultTimeout bounds the handshake at a listener. A dialer waits twice as long, so
// that a listener does not accept one that has just given up.
const defaultTimeout = 5 * time.Second

// A Network dials and listens at addresses of the form host:port. The zero
// Network is plain TCP.
type Network struct {
	// TLS, where set, is used on all connections. Dial checks the certificate
	// of the other side against ServerName if that is set, and else against the
	// host that it dials.
	TLS *tls.Config

	// Dropped, where set, is called for each connection that a listener dropped
	// before or during the handshake, with the remote address and the cause. Several
	// goroutines call it at the same time.
	Dropped func(addr string, err error)

	timeout time.Duration // 0: defaultTimeout
}

func (n Network) wait() time.Duration {
	if n.timeout > 0 {
		return n.timeout
	}
	return defaultTimeout
}

// Dial connects to the listener at addr.
func (n Network) Dial(ctx context.Context, addr string, hello transport.Hello, secret []byte) (transport.Conn, error) {
	frame, err := wire.AppendHello(nil, hello)
	if err == nil {
		err = transport.CheckSecret(secret)
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: dial %s: %w", addr, err)
	}
	c, err := n.dial(ctx, addr, frame, secret)
	if err != nil {
		return nil, &transport.DialError{Network: "tcp", Addr: addr, Err: err}
	}
	return c, nil
}

func (n Network) dial(ctx context.Context, addr string, hello, secret []byte) (*conn, error) {
	timeout := 2 * n.wait()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, errorOf(ctx, withoutAddr(err))
	}
	stop := closeWith(ctx, raw)
	c, proof, err := n.handshake(ctx, raw, addr, hello, secret)
	// After it has confirmed, the dialer must not give up: the listener relies on it.
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		_, err = c.stream.Write(proof)
	}
	if err != nil {
		raw.Close()
		return nil, classify(errorOf(ctx, err))
	}
	c.r.enlarge()
	return c, nil
}

// withoutAddr returns the cause of a failed dial, without the address.
func withoutAddr(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// handshake runs the handshake over a new connection to addr, and returns the frame
// that confirms it.
func (n Network) handshake(ctx context.Context, raw net.Conn, addr string, hello, secret []byte) (*conn, []byte, error) {
	stream := raw
	if n.TLS != nil {
		cfg := n.TLS
		if cfg.ServerName == "" {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, nil, err
			}
			cfg = cfg.Clone()
			cfg.ServerName = host
		}
		t := tls.Client(raw, cfg)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		stream = t
	}
	c := newConn(stream)
	proof, err := c.dialed(hello, secret)
	return c, proof, err
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

// classify marks the errors of a handshake that would also occur at another attempt as
// a *transport.Mismatch.
func classify(err error) error {
	var op *net.OpError
	refused := errors.As(err, &op) && op.Op == "remote error" // a TLS alert of the other side
	if refused || is[*tls.CertificateVerificationError](err) || is[tls.RecordHeaderError](err) || is[*wire.VersionError](err) || is[*wire.FormatError](err) || is[*lengthError](err) {
		return &transport.Mismatch{Err: fmt.Errorf("cannot be talked to: %w", err)}
	}
	return err
}

// is reports whether err is or wraps an error of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
