package mem

import (
	"context"
	"errors"
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
