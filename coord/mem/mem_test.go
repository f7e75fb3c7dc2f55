package mem

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/coordtest"
)

func TestHubConforms(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Harness {
		var mu sync.Mutex
		hubs := map[int]*Hub{} // by number of nodes
		hub := func(cfg coord.Config) (*Hub, error) {
			mu.Lock()
			defer mu.Unlock()
			if h := hubs[cfg.Nodes]; h != nil {
				return h, nil
			}
			h, err := New(cfg)
			if err == nil {
				hubs[cfg.Nodes] = h
			}
			return h, err
		}
		return coordtest.Harness{
			TTL:  time.Minute,
			Loss: time.Minute,
			Join: func(ctx context.Context, cfg coord.Config) (coord.Session, error) {
				h, err := hub(coord.Config{Run: cfg.Run, Nodes: cfg.Nodes})
				if err != nil {
					return nil, err
				}
				return h.JoinConfig(ctx, cfg)
			},
			Kill: func(s coord.Session) { s.(*session).hub.Kill(s.Self()) },
		}
	})
}

func TestHubAlsoEndsTheKilledSession(t *testing.T) {
	h, err := New(coord.Config{Run: "r", Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Join(t.Context(), "a:1")
	if err != nil {
		t.Fatal(err)
	}
	if h.Kill(1) || !h.Kill(0) || h.Kill(0) {
		t.Error("Kill does not tell members from others")
	}
	<-s.Done()
	if err := s.Err(); !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("got %v, want %v", err, godwit.ErrPeerLost)
	}
	if err := s.Barrier(t.Context(), "b"); !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("barrier: got %v, want %v", err, godwit.ErrPeerLost)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Who gives up leaves its place: the next one does not make the run whole.
func TestWhoGivesUpIsNoMember(t *testing.T) {
	h, err := New(coord.Config{Run: "r", Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, addr := range []string{"a:1", "b:1"} {
		if s, err := h.Join(ctx, addr); !errors.Is(err, coord.ErrMissing) || !strings.Contains(err.Error(), "1 of 2: node 0 ("+addr+")") {
			t.Errorf("the node at %s waited for no other: %v, %v", addr, s, err)
		}
	}
}

// A member that has left says nothing any more, and the run goes on for the other.
func TestWhoHasLeftIsNotHeard(t *testing.T) {
	h, err := New(coord.Config{Run: "r", Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	var ss [2]coord.Session
	var wg sync.WaitGroup
	for range ss {
		wg.Go(func() {
			if s, err := h.Join(t.Context(), "a:1"); err != nil {
				t.Error(err)
			} else {
				ss[s.Self()] = s
			}
		})
	}
	if wg.Wait(); t.Failed() {
		return
	}
	if addr := ss[0].Members()[1].Addr; addr != "a:1" {
		t.Errorf("node 1 is at %q", addr)
	}
	for range 2 {
		if err := ss[1].Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	ss[1].Fail(errors.New("late"))
	if err := ss[0].RequestStop(t.Context(), "enough"); err != nil || ss[0].StopReason() != "enough" {
		t.Errorf("the other member stops because of %q, %v", ss[0].StopReason(), err)
	}
	if err := ss[0].Err(); err != nil {
		t.Errorf("the run has ended for the other member: %v", err)
	}
	if err := ss[0].Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// In a synctest bubble time passes only when all goroutines wait on it, so a
// goroutine or timer that the hub left behind would show as a deadlock or as time
// passed.
func TestHubWorksUnderSimulatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(coord.Config{Run: "r", Nodes: 3})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for _, addr := range []string{"a:1", "b:1", "c:1"} {
			wg.Go(func() {
				s, err := h.Join(t.Context(), addr)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Barrier(t.Context(), "b"); err != nil {
					t.Error(err)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin); d != 0 {
			t.Errorf("it took %v of simulated time", d)
		}
	})
}
