package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A lease is a node's claim to be alive. One goroutine, keep, renews it.
//
// The client library's own renewal is not used: it does not report when the
// acknowledged renewal was sent, from which the TTL counts here.
type lease struct {
	cl  *clientv3.Client
	id  clientv3.LeaseID
	ttl time.Duration // as granted

	mu    sync.Mutex // guards acked, which keep alone changes
	acked time.Time  // when the last acknowledged renewal was sent
}

// errExpired: the lease is gone, at the server or because nobody renewed it.
var errExpired = errors.New("lease expired")

// errUnknown: the server does not know the lease.
var errUnknown = fmt.Errorf("%w: the coordinator does not know it any more", errExpired)

// grant asks for a lease of at least ttl.
func grant(ctx context.Context, cl *clientv3.Client, ttl time.Duration) (*lease, error) {
	l := &lease{cl: cl}
	seconds := int64((ttl + time.Second - 1) / time.Second)
	err := retry(ctx, func(ctx context.Context) error {
		l.acked = time.Now()
		r, err := cl.Grant(ctx, seconds)
		if err != nil {
			return err
		}
		l.id, l.ttl = r.ID, time.Duration(r.TTL)*time.Second
		return nil
	})
	if err != nil {
		return nil, unreachable(cl.Endpoints(), err)
	}
	return l, nil
}

// again is how long a node waits that was not answered before it asks again to renew its lease.
const again = 100 * time.Millisecond

// keep renews the lease until it is lost, which the error explains, or ctx ends.
func (l *lease) keep(ctx context.Context) error {
	for {
		err := l.renew(ctx)
		if ctx.Err() != nil || errors.Is(err, errExpired) {
			return err
		}
		if pause(ctx, min(again, l.left())) && l.left() <= 0 { // there is no time to ask again
			return unreachable(l.cl.Endpoints(), unacknowledged(l.ttl, err))
		}
	}
}

// left is the time until the lease must be taken for lost.
func (l *lease) left() time.Duration { return l.ttl - l.silence() }

// silence is for how long etcd has acknowledged no renewal. It is little more than a third of the TTL while etcd answers.
func (l *lease) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.acked)
}

// unacknowledged says for how long no renewal was acknowledged.
func unacknowledged(d time.Duration, err error) error {
	return fmt.Errorf("no renewal of this node's lease was acknowledged for %v: %w", d, err)
}

// renew renews over one stream until that breaks.
func (l *lease) renew(ctx context.Context) error {
	if err := l.ran(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hung := l.hangUp(cancel) // a connection that is being made answers nothing for up to 20 s
	stream, err := pb.NewLeaseClient(l.cl.ActiveConnection()).LeaseKeepAlive(ctx)
	hung.Stop()
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for {
		if err := l.ran(); err != nil {
			return err
		}
		if err := l.renewOnce(stream, cancel); err != nil {
			return cmp.Or(context.Cause(ctx), err) // a stream that was broken says so, and not why
		}
		if !pause(ctx, l.ttl/3) {
			return context.Cause(ctx)
		}
	}
}

// ran returns an error if the lease must be taken for lost before a renewal is begun. Nothing was refused then: this process did not
// run (stopped, or its machine suspended), and the others have been told that it is lost.
func (l *lease) ran() error {
	if l.left() > 0 {
		return nil
	}
	return fmt.Errorf("%w: this process did not run for %v and the TTL is %v", errExpired, l.silence().Round(time.Millisecond), l.ttl)
}

// hangUp breaks a stream by cancel, unless it is stopped within a third of the TTL, or what is left of it.
func (l *lease) hangUp(cancel context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(min(l.left(), l.ttl/3), func() { cancel(errors.New("etcd does not answer")) })
}

// renewOnce sends one renewal and waits for the answer. If none comes for a third
// of the TTL, it breaks the stream, so that the next may go to another server.
func (l *lease) renewOnce(stream pb.Lease_LeaseKeepAliveClient, cancel context.CancelCauseFunc) error {
	sent := time.Now()
	hung := l.hangUp(cancel)
	defer hung.Stop()
	err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)})
	if err != nil && !errors.Is(err, io.EOF) { // which says that the stream is over; Recv says why
		return err
	}
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	if r.TTL <= 0 {
		return errUnknown
	}
	l.mu.Lock()
	l.acked = sent
	l.mu.Unlock()
	return nil
}
