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
