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
	"strings"
	"sync"
	"time"
)

// The client of etcd tries again whatever error a connection meets, and ends with an
// error about time. So while no endpoint answers, probes make connections without it,
// to find the error. Some errors are permanent, such as a certificate for another
// name; then nothing is waited for.

const (
	probeTimeout  = 10 * time.Second // of one round of probes
	probeInterval = time.Second      // between two rounds, and before the first
)

// An endpointError says why no connection can be made to an endpoint.
type endpointError struct {
	endpoint string
	advice   string // what to do about it; empty: nothing is known
	err      error
}

func (e *endpointError) Error() string {
	if e.advice == "" {
		return fmt.Sprintf("at %s: %v", e.endpoint, e.err)
	}
	return fmt.Sprintf("at %s: %v: %s", e.endpoint, e.err, e.advice)
}

func (e *endpointError) Unwrap() error { return e.err }

// permanent reports whether waiting does not help.
func (e *endpointError) permanent() bool {
	// A connection that ends in the handshake may be that of a server which starts.
	return e.advice != "" && !errors.Is(e.err, io.EOF)
}

// untilPermanentError returns a context that also ends when all endpoints fail with a
// permanent error, which is its cause then. The function ends it and waits for the
// probes.
func (a Access) untilPermanentError(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var probes sync.WaitGroup
	probes.Go(func() {
		for pause(ctx, probeInterval) {
			if err := a.permanentError(ctx); err != nil {
				cancel(err)
			}
		}
	})
	return ctx, func() { cancel(nil); probes.Wait() }
}

// permanentError returns the permanent errors of the endpoints, nil if one has none.
func (a Access) permanentError(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var all error
	for _, e := range a.Endpoints {
		err := probe(ctx, e, a.TLS)
		var bad *endpointError
		switch {
		case !errors.As(err, &bad) || !bad.permanent():
			return nil
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// withProbes adds to an error about time what probes of the endpoints meet.
func (a Access) withProbes(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	for _, e := range a.Endpoints {
		if cause := probe(ctx, e, a.TLS); cause != nil {
			err = fmt.Errorf("%w; %w", err, cause)
		}
	}
	return err
}

// probe returns the error of a connection to an endpoint, nil if a connection can be
// made.
func probe(ctx context.Context, endpoint string, t *tls.Config) error {
	addr, secure := endpoint, t != nil
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		addr, secure = u.Host, u.Scheme == "https"
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return &endpointError{endpoint, "", err}
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline) // without one, ctx ends nothing but the dialing
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
		return &endpointError{endpoint, advice(err), err}
	}
	// A server that does not accept the client's certificate reports it after the
	// client's handshake. Else it sends nothing before it is asked.
	_ = c.SetDeadline(time.Now().Add(probeTimeout / 2))
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // nobody waits for it any more
	if _, err = s.Read(make([]byte, 1)); isRemote(err) {
		return &endpointError{endpoint, advice(err), err}
	}
	return nil
}

// probePlain returns an error if a server that is called without TLS wants TLS.
func probePlain(ctx context.Context, endpoint string, c net.Conn) error {
	err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // it is told nothing
	if err == nil || isRemote(err) {
		return &endpointError{endpoint, "give the files of a certificate, its key and the authority", errors.New("it speaks TLS only")}
	}
	return nil
}

// isRemote reports whether the other side refused a handshake.
func isRemote(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// expired is the alert of who is given a certificate that is not valid yet or any more.
const expired = tls.AlertError(45)

// advice says what to do about a handshake that failed.
func advice(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case isRemote(err) && strings.HasSuffix(err.Error(), expired.Error()):
		return "have the certificate of this process made anew, or set the clocks of both machines right"
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
