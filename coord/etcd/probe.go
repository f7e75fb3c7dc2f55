package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// The client of etcd tries again whatever goes wrong on the way to a connection,
// and ends with an error about time. So while nobody answers, connections are made
// without it, to find out what is in the way. Some of that does not pass, such as a
// certificate for another name; then there is nothing to wait for.

const (
	probePatience = 10 * time.Second // bounds what one look may take
	probeEvery    = time.Second      // is between two looks, and before the first
)

// A wayError says why an endpoint cannot be spoken to.
type wayError struct {
	endpoint string
	advice   string // what to do about it; empty: nothing is known
	err      error
}

func (e *wayError) Error() string {
	if e.advice == "" {
		return fmt.Sprintf("at %s: %v", e.endpoint, e.err)
	}
	return fmt.Sprintf("at %s: %v: %s", e.endpoint, e.err, e.advice)
}

func (e *wayError) Unwrap() error { return e.err }

// lasts reports whether waiting does not help.
func (e *wayError) lasts() bool {
	// A connection that ends in the handshake may be that of a server which starts.
	return e.advice != "" && !errors.Is(e.err, io.EOF)
}

// untilBarred returns a context that also ends when no endpoint can be spoken to as
// things are, with that as its cause. The function ends it and waits for the looks.
func (a Access) untilBarred(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		for pause(ctx, probeEvery) {
			if err := a.barred(ctx); err != nil {
				cancel(err)
			}
		}
	})
	return ctx, func() { cancel(nil); looks.Wait() }
}

// barred returns what lasts in the way to the endpoints, nil if there is one without.
func (a Access) barred(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	var all error
	for _, e := range a.Endpoints {
		err := probe(ctx, e, a.TLS)
		var way *wayError
		switch {
		case !errors.As(err, &way) || !way.lasts():
			return nil
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// explained adds to an error about time what is in the way to the endpoints.
func (a Access) explained(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	for _, e := range a.Endpoints {
		if cause := probe(ctx, e, a.TLS); cause != nil {
			err = fmt.Errorf("%w; %w", err, cause)
		}
	}
	return err
}

// probe returns what is in the way to an endpoint, nil if that is nothing that a
// connection shows.
func probe(ctx context.Context, endpoint string, t *tls.Config) error {
	addr, secure := endpoint, t != nil
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		addr, secure = u.Host, u.Scheme == "https"
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return &wayError{endpoint, "", err}
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline) // without one, ctx ends nothing but the dialling
	}
	if !secure {
		return probePlain(ctx, endpoint, c)
	}
	if t == nil {
		t = &tls.Config{}
	}
	t = t.Clone()
	t.NextProtos = []string{"h2"}
	if t.ServerName == "" {
		t.ServerName, _, _ = net.SplitHostPort(addr) // it was dialled
	}
	s := tls.Client(c, t)
	if err := s.HandshakeContext(ctx); err != nil {
		return &wayError{endpoint, advice(err), err}
	}
	// A server says after the client's handshake that it does not take its
	// certificate. Else it says nothing before it is asked.
	_ = c.SetDeadline(time.Now().Add(probePatience / 2))
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // nobody waits for it any more
	if _, err = s.Read(make([]byte, 1)); isRemote(err) {
		return &wayError{endpoint, advice(err), err}
	}
	return nil
}

// probePlain says whether a server that is spoken to in plain wants TLS.
func probePlain(ctx context.Context, endpoint string, c net.Conn) error {
	err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // it is told nothing
	if err == nil || isRemote(err) {
		return &wayError{endpoint, "give the files of a certificate, its key and the authority", errors.New("it speaks TLS only")}
	}
	return nil
}

// isRemote reports whether the other side refused a handshake.
func isRemote(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// advice says what to do about a handshake that failed.
func advice(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case isRemote(err):
		return "give a certificate for clients that the authority of etcd has signed"
	case errors.As(err, &authority):
		return "give the file of the authority that signed the certificate of etcd"
	case errors.As(err, &name):
		return "give the name that the certificate of etcd carries, or have it carry this address"
	case errors.As(err, &invalid):
		return "have the certificate of etcd made anew, or set this machine's clock right"
	case errors.As(err, &record) || errors.Is(err, io.EOF):
		return "it does not speak TLS: start it with certificates, or give none here"
	}
	return ""
}
