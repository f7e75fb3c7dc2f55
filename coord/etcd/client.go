package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/godwit-ps/godwit/coord"
)

// dial makes a client. It does not wait for a connection.
func dial(endpoints []string, t *tls.Config) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("coord: no etcd endpoints given")
	}
	var opts []grpc.DialOption
	if t != nil {
		t = t.Clone()
		if t.ServerName != "" && !strings.HasPrefix(endpoints[0], "http://") {
			opts = append(opts, grpc.WithTransportCredentials(named{credentials.NewTLS(t), t.ServerName}))
		}
	}
	cl, err := clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		TLS:         t,
		DialOptions: opts,
		// Finds dead connections while a watch waits. A server refuses pings
		// that come more often than every 5 s.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // what matters comes back as an error
	})
	if err != nil {
		return nil, fmt.Errorf("coord: etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	return cl, nil
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

// unreachable is the error of an operation that got no answer from etcd.
func unreachable(cl *clientv3.Client, err error) error {
	return fmt.Errorf("%w: etcd at %s: %w", coord.ErrCoordinator, strings.Join(cl.Endpoints(), ", "), err)
}

// retry repeats op while it fails for a reason that may pass, until ctx ends.
// op must be harmless when done twice: a lost answer does not tell.
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
