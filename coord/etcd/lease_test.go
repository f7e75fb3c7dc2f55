package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A slowStream acknowledges renewals after a while.
type slowStream struct {
	pb.Lease_LeaseKeepAliveClient
	sent time.Time // before this, the last renewal was under way
}

func (s *slowStream) Send(*pb.LeaseKeepAliveRequest) error {
	s.sent = time.Now()
	return nil
}

func (s *slowStream) Recv() (*pb.LeaseKeepAliveResponse, error) {
	time.Sleep(5 * time.Millisecond)
	return &pb.LeaseKeepAliveResponse{TTL: 60}, nil
}

// The server counts from when a renewal arrived, which may be long before the
// answer does. A node that counts from when it sent it never believes longer than
// the others that it is alive.
func TestALeaseCountsFromWhenItsRenewalWasSent(t *testing.T) {
	begin := time.Now()
	l := &lease{ttl: time.Minute, acked: begin.Add(-time.Second)}
	s := &slowStream{}
	if err := l.renewOnce(s, func(error) {}); err != nil {
		t.Fatal(err)
	}
	if l.acked.Before(begin) || l.acked.After(s.sent) {
		t.Errorf("the lease counts from %v after the call, the renewal was sent %v after it", l.acked.Sub(begin), s.sent.Sub(begin))
	}
}

// A process that did not run for the TTL knows that it is lost, whether the server
// has noticed or not: others may have been told.
func TestALeaseThatNobodyRenewedIsLostWhateverTheServerSays(t *testing.T) {
	e := serve(t)
	cl, err := e.Access().connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	l, err := grant(t.Context(), cl, ttl)
	if err != nil {
		t.Fatal(err)
	}
	l.acked = time.Now().Add(-l.ttl - time.Second) // as after a pause
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := l.keep(ctx); !errors.Is(err, errExpired) || !strings.Contains(err.Error(), "did not run for") {
		t.Errorf("got %v, want that the lease has expired because the process did not run", err)
	}
}

// A silentEtcd takes renewals and answers none, as a member does that has lost the others.
type silentEtcd struct{ pb.UnimplementedLeaseServer }

func (*silentEtcd) LeaseKeepAlive(s pb.Lease_LeaseKeepAliveServer) error {
	<-s.Context().Done()
	return nil
}

// A renewal that was given up was not cancelled by anybody: etcd did not answer.
func TestALeaseThatNobodyAnswersSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterLeaseServer(s, &silentEtcd{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	defer serving.Wait()
	defer s.Stop()
	checkSilent(t, l.Addr())
}

// An etcd that takes connections and says nothing, as behind a network that passes nothing on, is given up when the lease ends, and not
// when the connection does.
func TestALeaseEndsWhileItsConnectionIsBeingMade(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, and nobody reads them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	checkSilent(t, silent.Addr())
}

// checkSilent keeps a lease at an etcd that does not answer, until it ends.
func checkSilent(t *testing.T, etcd net.Addr) {
	t.Helper()
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for err = errExpired; errors.Is(err, errExpired) && ctx.Err() == nil; { // a busy machine may not run this process for a part of that time
		err = (&lease{cl: cl, ttl: 300 * time.Millisecond, acked: time.Now()}).keep(ctx)
	}
	if !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "for 300ms: etcd does not answer") {
		t.Errorf("got %v, want that etcd does not answer", err)
	}
}

// A node that has heard nothing of etcd for most of its lease, and then loses a peer, does not take that for the cause: the peer's lease has ended for the same reason.
func TestAPeerThatEndsWhileEtcdIsSilentIsNotTheCause(t *testing.T) {
	e := serve(t)
	for _, silent := range []bool{false, true} {
		run := joinAll(t, e, coord.Config{Run: fmt.Sprint("silent-", silent), Nodes: 2, TTL: ttl}, 2)
		s := run[0].(*session)
		if silent {
			s.lease.mu.Lock()
			s.lease.acked = time.Now().Add(-ttl * 3 / 4)
			s.lease.mu.Unlock()
		}
		s.Fail(&coord.MemberError{Member: s.Members()[1-s.Self()], Err: fmt.Errorf("%w: connection ended", godwit.ErrPeerLost)})
		err := s.Err()
		if errors.Is(err, coord.ErrCoordinator) != silent || errors.Is(err, godwit.ErrPeerLost) == silent || !strings.Contains(err.Error(), s.Members()[1-s.Self()].String()+": node lost: connection ended") {
			t.Errorf("etcd is silent: %v; got %v", silent, err)
		}
		if silent && !strings.Contains(err.Error(), "no renewal of this node's lease was acknowledged for 45") {
			t.Errorf("got %v, want for how long etcd was silent", err)
		}
	}
}

// A process that stood still hears at first that others are lost, whose leases its etcd has not renewed. It is itself the cause.
func TestAProcessThatStoodStillDoesNotBlameOthers(t *testing.T) {
	e := serve(t)
	for stood, want := range map[time.Duration]string{
		ttl * 2:     "this process did not run for 2m0",
		ttl * 3 / 4: "no renewal of this node's lease was acknowledged for 45",
		0:           "lease expired",
	} {
		s := joinAll(t, e, coord.Config{Run: fmt.Sprint("stood-", int64(stood)), Nodes: 2, TTL: ttl}, 2)[0].(*session)
		s.lease.mu.Lock()
		s.lease.acked = time.Now().Add(-stood)
		s.lease.mu.Unlock()
		other := s.Members()[1-s.Self()]
		s.apply(&clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(s.keys.node(other.ID))}})
		<-s.Done()
		var m *coord.MemberError
		err := s.Err()
		if blamed := errors.As(err, &m) && m.Member == other; blamed != (stood == 0) || !strings.Contains(err.Error(), want) {
			t.Errorf("after %v: got %v, want %q", stood, err, want)
		}
	}
}
