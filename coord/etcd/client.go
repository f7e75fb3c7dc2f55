package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/godwit-ps/godwit/coord"
)

// An Access says how to reach an etcd and how to authenticate there. It implements
// [coord.Coordinator] and may be copied.
type Access struct {
	// Endpoints are the etcd's, each host:port, http://host:port or
	// https://host:port. Without a scheme they are spoken to by TLS if TLS is
	// not nil. With TLS, http is an error: the token, too, would be sent as it is.
	Endpoints []string
	// TLS, where set, encrypts the connections and authenticates both sides.
	TLS *tls.Config
	// Token is that of a server of package coord/etcd/server, or user:password for
	// an etcd that has users; empty: none. See [CheckToken].
	Token string
}

var _ coord.Coordinator = Access{}

// Contact implements [coord.Coordinator].
func (a Access) Contact() coord.Contact {
	return coord.Contact{Endpoints: slices.Clone(a.Endpoints), Token: a.Token}
}

// connect returns a client of an etcd that has answered it. One that is not there
// yet is waited for within ctx, and one that cannot be spoken to as things are is not.
func (a Access) connect(ctx context.Context) (*clientv3.Client, error) {
	if len(a.Endpoints) == 0 {
		return nil, errors.New("no etcd endpoints given")
	}
	if err := CheckToken(a.Token); err != nil {
		return nil, err
	}
	if a.TLS != nil {
		for _, e := range a.Endpoints {
			if u, err := url.Parse(e); err == nil && u.Host != "" && u.Scheme != "https" {
				return nil, fmt.Errorf("etcd at %s would be spoken to without TLS, and certificates are given: write https://%s, or leave them out", e, u.Host)
			}
		}
	}
	ctx, stop := a.untilPermanentError(ctx)
	defer stop()
	var cl *clientv3.Client
	err := retry(ctx, func(ctx context.Context) (err error) {
		if cl == nil {
			cl, err = a.dial(ctx)
		}
		if err == nil {
			_, err = cl.Get(ctx, root, clientv3.WithCountOnly())
		}
		return err
	})
	if err == nil {
		return cl, nil
	}
	if cl != nil {
		cl.Close()
	}
	var bar *endpointError
	if errors.As(context.Cause(ctx), &bar) {
		err = context.Cause(ctx)
	}
	return nil, unreachable(a.Endpoints, a.withProbes(err))
}

// reconnects are how connections are tried again, several times within a lease: an etcd that was restarted is found while the
// run lives. By default, the pauses grow to minutes.
var reconnects = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 20 * time.Second, // for an attempt, as by default
}

// dial makes a client. It waits for a connection only to name a user, within ctx.
func (a Access) dial(ctx context.Context) (*clientv3.Client, error) {
	life, cancel := context.WithCancel(context.Background())
	c := clientv3.Config{
		Endpoints: a.Endpoints,
		Context:   life,
		// Finds dead connections while a watch waits. A server refuses pings
		// that come more often than every 5 s.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(reconnects)},
		Logger:               zap.NewNop(), // what matters comes back as an error
	}
	if a.TLS != nil {
		c.TLS = a.TLS.Clone()
		if c.TLS.ServerName != "" {
			c.DialOptions = append(c.DialOptions, grpc.WithTransportCredentials(named{credentials.NewTLS(c.TLS), c.TLS.ServerName}))
		}
	}
	if user, password, ok := strings.Cut(a.Token, ":"); ok {
		c.Username, c.Password = user, password
	} else if a.Token != "" {
		c.DialOptions = append(c.DialOptions, grpc.WithPerRPCCredentials(bearer(a.Token)))
	}
	goOn := context.AfterFunc(ctx, cancel)
	cl, err := clientv3.New(c)
	if !goOn() { // ctx ended, and the client with it
		if err == nil {
			cl.Close()
		}
		return nil, context.Cause(ctx)
	}
	if err != nil {
		cancel()
	}
	return cl, err
}

// Named credentials expect the server's certificate to carry a name, wherever
// the server is. The etcd client itself expects it to name the address.
type named struct {
	credentials.TransportCredentials
	name string
}

func (n named) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return n.TransportCredentials.ClientHandshake(ctx, n.name, conn)
}

func (n named) Clone() credentials.TransportCredentials {
	return named{n.TransportCredentials.Clone(), n.name}
}

// unreachable is the error of an operation that got no answer from etcd, or one
// that it is not for this node.
func unreachable(endpoints []string, err error) error {
	kind := coord.ErrCoordinator
	if why := refusal(err); why != "" {
		kind, err = coord.ErrAccess, errors.New(why)
	}
	return fmt.Errorf("%w: etcd at %s: %w", kind, strings.Join(endpoints, ", "), err)
}

// retry repeats op while it fails for a reason that may pass, until ctx ends.
// op must be harmless when done twice: a lost answer does not show whether it was done.
func retry(ctx context.Context, op func(context.Context) error) error {
	wait := 20 * time.Millisecond
	for {
		err := op(ctx)
		if status.Code(err) == codes.DeadlineExceeded && over(ctx) {
			<-ctx.Done() // the server noticed first
			return context.Cause(ctx)
		}
		if err == nil || !mayPass(err) {
			return err
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// over reports whether the deadline of ctx has passed.
func over(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && !time.Now().Before(d)
}

// mayPass reports whether trying again can help: nobody there, no leader, or an
// answer lost on the way.
func mayPass(err error) bool {
	var coded interface{ Code() codes.Code }
	if errors.As(err, &coded) {
		return coded.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}

func leaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// pause waits and reports whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
