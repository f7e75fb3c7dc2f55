package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

func client(t *testing.T, e *ownServer) *clientv3.Client {
	t.Helper()
	cl, err := e.Access().connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

// joinAll joins nodes that come to an etcd at the same time.
func joinAll(t *testing.T, e *ownServer, cfg coord.Config, n int) []coord.Session {
	t.Helper()
	ss := make([]coord.Session, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			cfg := cfg
			cfg.Addr = fmt.Sprintf("live:%d", i)
			s, err := e.Access().Join(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			ss[i] = s
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return ss
}

var joinTest = coord.Config{Run: "r", Nodes: 2, TTL: ttl}

func deadRegistration(sealed bool) string {
	return string(ledger.Claim{Registration: ledger.Registration{Addr: "dead:1", Nodes: 2}, Sealed: sealed}.Encode())
}

func TestANodeKilledWhileJoiningIsReplaced(t *testing.T) {
	e := serve(t)
	cl := client(t, e)
	lease, err := cl.Grant(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Put(t.Context(), keysOf("r").node(0), deadRegistration(false), clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	for _, m := range joinAll(t, e, joinTest, 2)[0].Members() {
		if m.Addr == "dead:1" {
			t.Errorf("the dead node is a member: %v", m)
		}
	}
}

func TestANodeRegisteredInASealedRunFreesItsID(t *testing.T) {
	e := serve(t)
	cl := client(t, e)
	k := keysOf("r")
	put := func(sealed bool) int64 {
		r, err := cl.Put(t.Context(), k.node(0), deadRegistration(sealed))
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
	w := &watcher{cl: cl, prefix: k.node(1), rev: put(false)}
	defer w.close()
	next := func() string {
		evs, err := w.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return evs[len(evs)-1].Type.String()
	}
	joined := make(chan error, 1)
	go func() {
		cfg := joinTest
		cfg.Addr = "early:1"
		s, err := e.Access().Join(t.Context(), cfg)
		if err == nil {
			t.Cleanup(func() { _ = s.Close(context.Background()) })
		}
		joined <- err
	}()
	if ev := next(); ev != "PUT" {
		t.Fatalf("%s of id 1, want that the node takes it", ev)
	}
	put(true) // the run had been sealed with another as node 1
	for ev := next(); ev != "DELETE"; ev = next() {
	}
	if _, err := cl.Delete(t.Context(), k.node(0)); err != nil { // that run ends
		t.Fatal(err)
	}
	joinAll(t, e, joinTest, 1)
	if err := <-joined; err != nil {
		t.Error(err)
	}
}

func TestManyNodesComeAtOnce(t *testing.T) {
	e := serve(t)
	const n = 16
	cfg := joinTest
	cfg.Nodes = n
	ss := joinAll(t, e, cfg, n)
	var wg sync.WaitGroup
	for _, s := range ss {
		wg.Go(func() {
			for range 3 {
				if err := s.Barrier(t.Context(), "b"); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r, err := client(t, e).Get(t.Context(), "godwit/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		t.Errorf("%s is left behind", kv.Key)
	}
}

func TestAForeignKeyEndsTheSessionWithItsName(t *testing.T) {
	e := serve(t)
	cfg := joinTest
	cfg.Nodes = 1
	s := joinAll(t, e, cfg, 1)[0]
	if _, err := client(t, e).Put(t.Context(), keysOf("r").message(0), "hello"); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Err(); !strings.Contains(err.Error(), "node 0 sent a message that this node does not understand") {
		t.Errorf("got %v", err)
	}
}

func TestAnEtcdThatIsNotThereIsNamed(t *testing.T) {
	cfg := joinTest
	cfg.Addr, cfg.Join = "a:1", 300*time.Millisecond
	_, err := Access{Endpoints: []string{"127.0.0.1:1"}}.Join(t.Context(), cfg)
	if !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want %v at 127.0.0.1:1", err, coord.ErrCoordinator)
	}
	if _, err := (Access{}).Join(t.Context(), cfg); err == nil {
		t.Error("no endpoints are no error")
	}
}

// A node that waits no more when all nodes have confirmed the roster is a member: another one may have begun already.
func TestANodeThatGivesUpAfterTheSealIsAMember(t *testing.T) {
	e := serve(t)
	cfg, err := coord.Config{Run: "r", Nodes: 2, TTL: ttl, Addr: "gives:up"}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	j := waitsByHand(t, e, cfg)
	j.confirmed = 1 // of a roster that lacks the other's word
	if s := j.withdraw(); s != nil {
		t.Error("a node that is alone has a session of a run of two")
	}
	j.abandon()

	j = waitsByHand(t, e, cfg)
	other := make(chan coord.Session, 1)
	go func() { other <- joinAll(t, e, joinTest, 1)[0] }()
	if err := j.await(ctx); err != nil {
		t.Fatal(err)
	}
	j.watch.close()
	s := j.withdraw()
	if s == nil {
		t.Fatal("the run is sealed, and the node that gave up has no session")
	}
	if err := s.RequestStop(ctx, "given up"); err != nil {
		t.Fatal(err)
	}
	<-(<-other).Stopping()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// slowKV is an etcd whose transactions are in the hands of a test.
type slowKV struct {
	clientv3.KV
	commit func(clientv3.Txn) (*clientv3.TxnResponse, error)
}

func (kv slowKV) Txn(ctx context.Context) clientv3.Txn {
	return slowTxn{kv.KV.Txn(context.WithoutCancel(ctx)), kv.commit}
}

type slowTxn struct {
	clientv3.Txn
	commit func(clientv3.Txn) (*clientv3.TxnResponse, error)
}

func (x slowTxn) If(cs ...clientv3.Cmp) clientv3.Txn     { x.Txn = x.Txn.If(cs...); return x }
func (x slowTxn) Then(ops ...clientv3.Op) clientv3.Txn   { x.Txn = x.Txn.Then(ops...); return x }
func (x slowTxn) Else(ops ...clientv3.Op) clientv3.Txn   { x.Txn = x.Txn.Else(ops...); return x }
func (x slowTxn) Commit() (*clientv3.TxnResponse, error) { return x.commit(x.Txn) }

// givesUpConfirming returns a node that confirms the roster by commit, which fails, as the node waits no more, and
// what the other node gets.
func givesUpConfirming(t *testing.T, e *ownServer, commit func(clientv3.Txn)) (*joiner, <-chan coord.Session) {
	t.Helper()
	cfg, err := coord.Config{Run: "r", Nodes: 2, TTL: ttl, Addr: "gives:up"}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	j := waitsByHand(t, e, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	j.cl.KV = slowKV{j.cl.KV, func(x clientv3.Txn) (*clientv3.TxnResponse, error) {
		commit(x)
		cancel()
		return nil, context.Canceled
	}}
	other := make(chan coord.Session, 1)
	go func() {
		cfg := joinTest
		cfg.Addr = "other:1"
		s, err := e.Access().Join(t.Context(), cfg)
		if err != nil {
			s = nil
		}
		other <- s
	}()
	if err := j.await(ctx); err == nil {
		t.Fatal("a confirmation without an answer is no error")
	}
	j.watch.close()
	return j, other
}

// The other's word came before this node's, whose answer was lost: the run is sealed.
func TestANodeThatGivesUpWhileItConfirmsIsAMember(t *testing.T) {
	e := serve(t)
	cl := client(t, e)
	j, other := givesUpConfirming(t, e, func(x clientv3.Txn) {
		for key := keysOf("r").node(1); ; time.Sleep(time.Millisecond) {
			r, err := cl.Get(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			if len(r.Kvs) == 1 {
				if e, err := decodeEntry(r.Kvs[0]); err != nil || e.Roster != 0 {
					break
				}
			}
		}
		if r, err := x.Commit(); err != nil || !r.Succeeded {
			t.Errorf("the confirmation failed: %v", err)
		}
	})
	if j.confirmed == 0 {
		t.Fatal("the node does not know that it may have confirmed")
	}
	s := j.withdraw()
	if s == nil {
		t.Fatal("the run is sealed, and the node that gave up has no session")
	}
	o := <-other
	if o == nil {
		t.Fatal("the other node has no session")
	}
	for _, s := range []coord.Session{s, o} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A confirmation that comes after its withdrawal seals nothing.
func TestALateConfirmationDoesNothing(t *testing.T) {
	e := serve(t)
	var late clientv3.Txn
	j, other := givesUpConfirming(t, e, func(x clientv3.Txn) { late = x })
	if s := j.withdraw(); s != nil {
		t.Fatal("a node that did not confirm has a session")
	}
	if r, err := late.Commit(); err != nil || r.Succeeded {
		t.Errorf("the late confirmation was taken (%v)", err)
	}
	j.abandon()
	o := joinAll(t, e, joinTest, 1)[0] // the place is free
	if s := <-other; s == nil || len(s.Members()) != 2 || len(o.Members()) != 2 {
		t.Error("the other node has no session with the next one")
	} else if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// waitsByHand returns a node that has registered, and waits.
func waitsByHand(t *testing.T, e *ownServer, cfg coord.Config) *joiner {
	t.Helper()
	cl := client(t, e)
	l, err := grant(t.Context(), cl, cfg.TTL)
	if err != nil {
		t.Fatal(err)
	}
	j := &joiner{node: newNode(cl, cfg, l), roster: ledger.NewRoster(cfg), entries: map[godwit.NodeID]entry{}}
	if err := j.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.register(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := j.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestANodeGetsTheIDThatItAsksFor(t *testing.T) {
	t.Parallel() // to the other waits for a lease
	e := serve(t)
	cfg := coord.Config{Run: "seats", Nodes: 2, Addr: "a:1", TTL: ttl, Join: limit}
	if _, err := e.Access().JoinAs(t.Context(), 2, cfg); err == nil || !strings.Contains(err.Error(), "nodes 0 … 1") {
		t.Errorf("an id that the run does not have: %v", err)
	}
	type joined struct {
		s   coord.Session
		err error
	}
	first := make(chan joined, 1)
	go func() {
		s, err := e.Access().JoinAs(t.Context(), 1, cfg)
		first <- joined{s, err}
	}()
	cl := client(t, e)
	for key := keysOf(cfg.Run).node(1); ; time.Sleep(5 * time.Millisecond) {
		if r, err := cl.Get(t.Context(), key); err == nil && len(r.Kvs) == 1 {
			break
		}
	}
	hasty := cfg
	hasty.TTL = 3 * time.Second // for which it waits, as the other might be of an earlier run
	if _, err := e.Access().JoinAs(t.Context(), 1, hasty); !errors.Is(err, coord.ErrComplete) || !strings.Contains(err.Error(), "as node 1") {
		t.Errorf("an id that another node has: %v", err)
	}
	s, err := e.Access().JoinAs(t.Context(), 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	other := <-first
	if other.err != nil {
		t.Fatal(other.err)
	}
	if s.Self() != 0 || other.s.Self() != 1 {
		t.Errorf("the nodes got %d and %d, want 0 and 1", s.Self(), other.s.Self())
	}
	for _, s := range []coord.Session{s, other.s} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
