package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// A joiner is a node that waits for the others. It belongs to one goroutine.
type joiner struct {
	*node
	watch   *watcher
	queue   []*clientv3.Event // came with the last answer of watch, and not taken yet
	entries map[godwit.NodeID]entry
	roster  *ledger.Roster // the same, to talk about it

	self      godwit.NodeID // the id under which this node is registered,
	created   int64         // and its create revision; 0: none
	modified  int64         // the revision of what this node wrote there last
	confirmed int64         // the full roster that this node confirmed last, or may have, where no answer came
}

// errSealedBefore: the run was sealed before this node registered.
var errSealedBefore = errors.New("the run was sealed before")

// join registers this node and waits for the seal.
func (n *node) join(wait context.Context) (*session, error) {
	ctx, cancel := context.WithCancelCause(n.life)
	defer cancel(nil)
	defer context.AfterFunc(wait, func() { cancel(context.Cause(wait)) })()

	begin := time.Now()
	j := &joiner{node: n, roster: ledger.NewRoster(n.cfg), entries: map[godwit.NodeID]entry{}}
	s, err := j.run(ctx)
	if err != nil && wait.Err() != nil && j.confirmed != 0 {
		if s := j.withdraw(); s != nil {
			return s, nil
		}
	}
	switch {
	case err == nil:
		return s, nil
	case n.life.Err() != nil:
		return nil, fmt.Errorf("coord: run %q: join: %w", n.cfg.Run, context.Cause(n.life))
	case errors.Is(err, coord.ErrComplete) || wait.Err() == nil:
		return nil, err
	}
	within := fmt.Sprintf(" within %v", time.Since(begin).Round(10*time.Millisecond))
	return nil, j.roster.Missing(within, context.Cause(wait))
}

func (j *joiner) run(ctx context.Context) (*session, error) {
	if err := j.read(ctx); err != nil {
		return nil, err
	}
	defer j.watch.close()
	// The remains of a run whose nodes were killed are gone after a TTL.
	remains, cancel := context.WithTimeout(ctx, j.lease.ttl+time.Second)
	defer cancel()
	for {
		if err := j.register(ctx, remains); err != nil {
			return nil, err
		}
		err := j.await(ctx)
		if err == nil {
			return j.start(ctx)
		}
		if !errors.Is(err, errSealedBefore) {
			return nil, err
		}
		if err := j.deregister(ctx); err != nil {
			return nil, err
		}
	}
}

// withdraw takes back the confirmation of a node that does not wait any more. It returns the
// session if the run was sealed before that: the others count on this node then, and would
// see it lost.
func (j *joiner) withdraw() *session {
	ctx, cancel := context.WithTimeout(j.life, min(j.lease.ttl, lastWord))
	defer cancel()
	defer j.watch.close()
	me, registered := j.entries[j.self]
	if !registered || me.created != j.created {
		return nil
	}
	withdrawn := int64(math.MaxInt64)
	if _, sealed := j.confirmation(); !sealed {
		var err error
		if withdrawn, err = j.update(ctx, entry{Claim: ledger.Claim{Registration: me.Registration}}); err != nil {
			return nil
		}
	}
	for {
		if _, sealed := j.confirmation(); sealed {
			s, err := j.start(ctx)
			if err != nil {
				return nil
			}
			return s
		}
		ev, err := j.step(ctx)
		if err != nil || ev.Kv.ModRevision >= withdrawn {
			return nil // the others see that as well, before they see a seal
		}
	}
}

// lastWord bounds how long a node that does not wait any more asks whether the run was sealed.
const lastWord = 2 * time.Second

// read reads who is registered already. The watch follows what happens from then on.
func (j *joiner) read(ctx context.Context) error {
	var r *clientv3.GetResponse
	err := retry(ctx, func(ctx context.Context) (err error) {
		r, err = j.cl.Get(ctx, j.keys.nodes(), clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return j.failed(err)
	}
	for _, kv := range r.Kvs {
		if err := j.apply(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}); err != nil {
			return err
		}
	}
	j.watch = &watcher{cl: j.cl, prefix: string(j.keys), rev: r.Header.Revision + 1}
	return nil
}

// step applies the next event and returns it.
func (j *joiner) step(ctx context.Context) (*clientv3.Event, error) {
	if len(j.queue) == 0 {
		evs, err := j.watch.next(ctx)
		if err != nil {
			return nil, err
		}
		j.queue = evs
	}
	ev := j.queue[0]
	j.queue = j.queue[1:]
	return ev, j.apply(ev)
}

// apply brings entries and roster up to date.
func (j *joiner) apply(ev *clientv3.Event) error {
	id, ok := j.keys.isNode(ev.Kv.Key)
	if !ok {
		return nil // messages of a run that ends, or the configuration
	}
	if ev.Type == clientv3.EventTypeDelete {
		delete(j.entries, id)
		j.roster.Remove(id)
		return nil
	}
	e, err := decodeEntry(ev.Kv)
	if err != nil {
		return err
	}
	j.entries[id] = e
	j.roster.Put(id, e.Registration)
	return nil
}

// register takes the id that this node asks for, or the lowest free one. If it is not free, the remains of an
// earlier run may hold it: it may become free until remains ends.
func (j *joiner) register(ctx, remains context.Context) error {
	for {
		wait := ctx
		id, free := j.free()
		if free && !j.sealSeen() {
			if registered, err := j.tryRegister(ctx, id); registered || err != nil {
				return err
			}
			// Another was faster: its registration is the next event.
		} else {
			wait = remains
		}
		if _, err := j.step(wait); err != nil {
			if wait.Err() != nil && j.life.Err() == nil && wait == remains {
				return j.taken()
			}
			return err
		}
	}
}

// free returns the id to register under, and whether it is free.
func (j *joiner) free() (godwit.NodeID, bool) {
	if j.seat == godwit.NoNode {
		return j.roster.Free()
	}
	_, taken := j.entries[j.seat]
	return j.seat, !taken
}

// taken is the error of a node that got no id.
func (j *joiner) taken() error {
	err := j.roster.Complete()
	if e, ok := j.entries[j.seat]; ok {
		return fmt.Errorf("coord: run %q: join as node %d: the process at %s has that id: %w", j.cfg.Run, j.seat, e.Addr, err)
	}
	return err
}

// tryRegister registers this node under an id and reports whether that was free.
func (j *joiner) tryRegister(ctx context.Context, id godwit.NodeID) (bool, error) {
	var r *clientv3.TxnResponse
	key, e := j.keys.node(id), entry{Claim: ledger.Claim{Registration: ledger.NewRegistration(j.cfg)}}
	err := retry(ctx, func(ctx context.Context) (err error) {
		r, err = j.cl.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, e.encode(), clientv3.WithLease(j.lease.id))).
			Else(clientv3.OpGet(key)).
			Commit()
		return err
	})
	if err != nil {
		return false, j.failed(err)
	}
	j.self, j.created, j.modified = id, r.Header.Revision, r.Header.Revision
	j.seen.Store(r.Header.Revision)
	if r.Succeeded {
		return true, nil
	}
	// Taken: by this node itself, if the answer to an earlier try was lost.
	kvs := r.Responses[0].GetResponseRange().Kvs
	if len(kvs) != 1 || kvs[0].Lease != int64(j.lease.id) {
		return false, nil
	}
	j.created, j.modified = kvs[0].CreateRevision, kvs[0].ModRevision
	return true, nil
}

// deregister frees the id again.
func (j *joiner) deregister(ctx context.Context) error {
	key := j.keys.node(j.self)
	err := retry(ctx, func(ctx context.Context) error {
		_, err := j.cl.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", j.created)).
			Then(clientv3.OpDelete(key)).
			Commit()
		return err
	})
	if err != nil {
		return j.failed(err)
	}
	return nil
}

// await follows the roster until the run is sealed.
func (j *joiner) await(ctx context.Context) error {
	for {
		ev, err := j.step(ctx)
		if err != nil {
			return err
		}
		me, ok := j.entries[j.self]
		if !ok && ev.Kv.ModRevision > j.created {
			return fmt.Errorf("coord: run %q: join: the registration of this node as node %d was removed: %w", j.cfg.Run, j.self, errExpired)
		}
		if !ok || me.created != j.created {
			continue // the watch has not reached this node's registration yet
		}
		if err := j.roster.Mismatch(j.self); err != nil {
			return err
		}
		newest, confirmed := j.confirmation()
		switch {
		case confirmed:
			return nil
		case j.sealSeen():
			return errSealedBefore
		case newest != 0 && newest != j.confirmed:
			if err := j.confirm(ctx, entry{Claim: ledger.Claim{Registration: me.Registration, Roster: newest}}); err != nil {
				return err
			}
		}
	}
}

// confirmation returns the number of the roster, 0 if it is not full, and whether all
// have confirmed it.
func (j *joiner) confirmation() (newest int64, confirmed bool) {
	if _, free := j.roster.Free(); free {
		return 0, false
	}
	for _, e := range j.entries {
		newest = max(newest, e.created)
	}
	for _, e := range j.entries {
		if e.Roster != newest {
			return newest, false
		}
	}
	return newest, true
}

// sealSeen reports whether a node has seen a seal.
func (j *joiner) sealSeen() bool {
	for _, e := range j.entries {
		if e.Sealed {
			return true
		}
	}
	return false
}

// start marks this node's registration as sealed and begins the session. What the watch brought
// since the seal belongs to the session.
func (j *joiner) start(ctx context.Context) (*session, error) {
	me := j.entries[j.self]
	me.Sealed = true
	if _, err := j.update(ctx, me); err != nil {
		return nil, err
	}
	// The watch so far ends with the wait for the join; the session's own goes
	// on where the queue ends.
	w := &watcher{cl: j.cl, prefix: string(j.keys), rev: j.watch.rev}
	return newSession(j.node, j.self, j.roster, w, j.queue), nil
}

// update overwrites this node's entry and returns the revision.
func (j *joiner) update(ctx context.Context, e entry) (int64, error) {
	var r *clientv3.PutResponse
	err := retry(ctx, func(ctx context.Context) (err error) {
		r, err = j.cl.Put(ctx, j.keys.node(j.self), e.encode(), clientv3.WithLease(j.lease.id))
		return err
	})
	if err != nil {
		return 0, j.failed(err)
	}
	return r.Header.Revision, nil
}

// confirm writes the entry that confirms a roster over what this node wrote last. One that is given up and
// reaches etcd later than a withdrawal does nothing. Where the registration is gone, the watch tells.
func (j *joiner) confirm(ctx context.Context, e entry) error {
	j.confirmed = e.Roster // also if no answer comes
	key := j.keys.node(j.self)
	for {
		var r *clientv3.TxnResponse
		err := retry(ctx, func(ctx context.Context) (err error) {
			r, err = j.cl.Txn(ctx).
				If(clientv3.Compare(clientv3.ModRevision(key), "=", j.modified)).
				Then(clientv3.OpPut(key, e.encode(), clientv3.WithLease(j.lease.id))).
				Else(clientv3.OpGet(key)).
				Commit()
			return err
		})
		if err != nil {
			return j.failed(err)
		}
		if r.Succeeded {
			j.modified = r.Header.Revision
			return nil
		}
		// Written by this node itself, if the answer to an earlier try was lost.
		kvs := r.Responses[0].GetResponseRange().Kvs
		if len(kvs) != 1 || kvs[0].Lease != int64(j.lease.id) {
			return nil
		}
		if j.modified = kvs[0].ModRevision; string(kvs[0].Value) == e.encode() {
			return nil
		}
	}
}

// failed is the error of an operation at etcd.
func (j *joiner) failed(err error) error {
	return fmt.Errorf("coord: run %q: join: %w", j.cfg.Run, unreachable(j.cl.Endpoints(), err))
}
