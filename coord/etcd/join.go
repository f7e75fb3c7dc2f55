package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// Join implements [coord.Coordinator]. An etcd that does not answer yet is waited
// for within [coord.Config].Join as well; one that refuses this node is not.
func (a Access) Join(ctx context.Context, cfg coord.Config) (coord.Session, error) {
	return a.JoinAs(ctx, godwit.NoNode, cfg)
}

// JoinAs is Join with an id that is asked for, such as the rank that a launcher gives a process. All nodes of a run ask for
// theirs, or none does ([godwit.NoNode]). Where another process has it, that of an earlier run is waited
// for, until its lease ends.
func (a Access) JoinAs(ctx context.Context, id godwit.NodeID, cfg coord.Config) (coord.Session, error) {
	s, err := join(ctx, a, id, cfg)
	if err != nil {
		return nil, err // not s: an interface that holds a nil *session is not nil
	}
	return s, nil
}

func join(ctx context.Context, a Access, seat godwit.NodeID, cfg coord.Config) (*session, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	if seat != godwit.NoNode && int(seat) >= cfg.Nodes {
		return nil, fmt.Errorf("coord: run %q: join as node %d: the run has nodes 0 … %d", cfg.Run, seat, cfg.Nodes-1)
	}
	wait, cancel := context.WithTimeout(ctx, cfg.Join)
	defer cancel()
	cl, err := a.connect(wait)
	if err != nil {
		return nil, fmt.Errorf("coord: run %q: join: %w", cfg.Run, err)
	}
	l, err := grant(wait, cl, cfg.TTL)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("coord: run %q: join: %w", cfg.Run, err)
	}
	n := newNode(cl, cfg, l)
	n.seat = seat
	s, err := n.join(wait)
	if err != nil {
		n.abandon()
		return nil, err
	}
	return s, nil
}

// A node is what this process holds at etcd, before and after the seal.
type node struct {
	cl    *clientv3.Client
	cfg   coord.Config
	seat  godwit.NodeID // the id that it asks for; NoNode: any
	keys  keys
	lease *lease
	life  context.Context // ends when the lease or coordinator is lost, with the cause
	end   context.CancelCauseFunc
	seen  atomic.Int64   // a revision of etcd that this node has seen; 0: none
	work  sync.WaitGroup // all goroutines; they end with life
}

func newNode(cl *clientv3.Client, cfg coord.Config, l *lease) *node {
	n := &node{cl: cl, cfg: cfg, keys: keysOf(cfg.Run), lease: l}
	n.life, n.end = context.WithCancelCause(context.Background())
	n.work.Go(func() { n.end(n.unknown(l.keep(n.life))) })
	return n
}

// unknown returns why a lease is not known any more: that etcd has lost its data, if its revision is before one that this node has
// seen; else err. It asks only if err is that etcd does not know the lease.
func (n *node) unknown(err error) error {
	if !errors.Is(err, errUnknown) {
		return err
	}
	ctx, cancel := context.WithTimeout(n.life, time.Second)
	defer cancel()
	r, rerr := n.cl.Get(ctx, root, clientv3.WithCountOnly())
	if rerr == nil && r.Header.Revision < n.seen.Load() {
		return unreachable(n.cl.Endpoints(), errors.New("it has lost its data, and with them this run"))
	}
	return err
}

// release gives everything back and waits until nothing runs any more.
func (n *node) release(ctx context.Context) {
	if n.life.Err() == nil {
		// If it fails, the lease expires by itself.
		_, _ = n.cl.Revoke(ctx, n.lease.id)
	}
	n.end(godwit.ErrClosed)
	n.work.Wait()
	_ = n.cl.Close()
}

// abandon releases a node that did not get to a session.
func (n *node) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), min(n.lease.ttl, 2*time.Second))
	defer cancel()
	n.release(ctx)
}
