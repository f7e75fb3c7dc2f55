package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// A session is a member of a sealed run. One goroutine, follow, applies the events of
// the watch to the ledger; another renews the lease.
type session struct {
	*ledger.Ledger
	*node
	closing sync.Once
	closed  error // result of Close
}

func newSession(n *node, self godwit.NodeID, sealed *ledger.Roster, w *watcher, seen []*clientv3.Event) *session {
	s := &session{node: n}
	n.seen.Store(w.rev - 1)
	s.Ledger = ledger.New(self, sealed.Members(), sealed.Secret(), n.lease.ttl, s.publish)
	s.Silent = s.silent
	n.work.Go(func() { s.follow(w, seen) })
	return s
}

// follow applies all events in their order until the life of the node ends.
func (s *session) follow(w *watcher, evs []*clientv3.Event) {
	defer w.close()
	for {
		for _, ev := range evs {
			s.apply(ev)
		}
		var err error
		if evs, err = w.next(s.life); err != nil {
			s.end(err) // of no effect if it was life that ended
			s.End(s.cause())
			return
		}
	}
}

// cause returns why life ended, as an error of the run.
func (s *session) cause() error {
	err := context.Cause(s.life)
	if errors.Is(err, errExpired) {
		return s.Expired(err)
	}
	return err
}

func (s *session) apply(ev *clientv3.Event) {
	if id, ok := s.keys.isMessage(ev.Kv.Key); ok && ev.Type == clientv3.EventTypePut {
		w, err := ledger.DecodeMessage(ev.Kv.Value)
		if err != nil {
			s.end(fmt.Errorf("coord: run %q: node %d sent a message that this node does not understand: %w", s.cfg.Run, id, err))
			return
		}
		s.Apply(id, w)
	}
	if id, ok := s.keys.isNode(ev.Kv.Key); ok && ev.Type == clientv3.EventTypeDelete {
		if id == s.Self() {
			s.end(errExpired)
			return
		}
		lost := s.Loss(id, errExpired)
		if lost == nil { // it has left
			return
		}
		err := s.lease.ran() // if not, the other has lost the etcd within this process
		if err == nil {
			err = s.silent(lost)
		}
		if err != nil {
			s.end(err)
			return
		}
		s.Lost(id, errExpired.Error())
	}
}

// publish implements ledger.Publish. It ends with the node's life at the latest.
func (s *session) publish(ctx context.Context, w ledger.Message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(s.cause()) })()

	key, value := s.keys.message(s.Self()), string(w.Encode())
	err := retry(ctx, func(ctx context.Context) error {
		_, err := s.cl.Put(ctx, key, value, clientv3.WithLease(s.lease.id))
		return err
	})
	if leaseGone(err) {
		s.end(s.unknown(errUnknown))
	}
	switch {
	case err == nil:
		return nil
	case s.life.Err() != nil:
		return s.cause()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return unreachable(s.cl.Endpoints(), err)
}

// silent is the Silent of the ledger: a node that stands still may have etcd within.
func (s *session) silent(lost *coord.MemberError) error {
	d := s.lease.silence()
	if d < s.lease.ttl*2/3 || lost.Member.ID == s.Self() {
		return nil
	}
	return unreachable(s.cl.Endpoints(), unacknowledged(d.Round(time.Millisecond), errors.New(lost.Error())))
}

// Close implements coord.Session.
func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *session) close(ctx context.Context) error {
	s.End(godwit.ErrClosed)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.lease.ttl)
		defer cancel()
	}
	var err error
	if s.life.Err() == nil { // else there is nothing to leave, and nobody to tell
		err = s.publish(ctx, ledger.Message{Kind: ledger.Leave})
	}
	s.release(ctx)
	if err != nil {
		return fmt.Errorf("coord: run %q: %v cannot leave orderly, the others will see a loss: %w", s.cfg.Run, s.Members()[s.Self()], err)
	}
	return nil
}
