package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/transport/mem"
)

// sessions returns those of a sealed run whose nodes are at the addresses, in
// their order.
func sessions(t *testing.T, addrs ...string) (*cmem.Hub, []coord.Session) {
	t.Helper()
	ctx := background(t)
	hub, err := cmem.New(coord.Config{Run: "test", Nodes: len(addrs)})
	must(t, err)
	out := make([]coord.Session, len(addrs))
	joined := make(chan error, len(addrs))
	for _, addr := range addrs {
		go func() {
			s, err := hub.Join(ctx, addr)
			if err == nil {
				out[s.Self()] = s
			}
			joined <- err
		}()
	}
	for range addrs {
		must(t, <-joined)
	}
	for _, s := range out {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return hub, out
}

// begin starts a node that listens at its address of the switch, if that is there
// at all.
func begin(t *testing.T, ctx context.Context, sw *mem.Switch, s coord.Session, at string) <-chan error {
	t.Helper()
	l, err := sw.Listen(at)
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		defer l.Close()
		n, err := Start(ctx, Config{Model: model(t, 10, 2), Workers: 1, Session: s, Network: sw, Listener: l, Run: "test"})
		if err == nil {
			err = errors.Join(errors.New("it started"), n.Close(ctx))
		}
		ended <- err
	}()
	return ended
}

func endOf(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatalf("a start did not end within %v", patience)
		return nil
	}
}

// A node that waits for its peers hears that the run is over.
func TestAStartEndsWithTheSession(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(hub *cmem.Hub, s []coord.Session)
		says string
	}{
		"a peer is killed": {func(hub *cmem.Hub, _ []coord.Session) { hub.Kill(1) }, "killed"},
		"a peer fails":     {func(_ *cmem.Hub, s []coord.Session) { s[1].Fail(errors.New("out of cheese")) }, "out of cheese"},
	} {
		t.Run(what, func(t *testing.T) {
			noLeak(t, func() {
				hub, s := sessions(t, "a", "b")
				ended := begin(t, background(t), &mem.Switch{}, s[0], s[0].Members()[0].Addr)
				time.Sleep(20 * time.Millisecond)
				c.end(hub, s)
				if err := endOf(t, ended); !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "node 1 (") || !strings.Contains(err.Error(), c.says) {
					t.Errorf("the start ended with %v, want one that names node 1 and %q", err, c.says)
				}
			})
		})
	}
}

// A node that cannot reach a peer tells all which, where and why, before these
// give up; and a start that is canceled leaves the session as it is.
func TestWhoCannotReachAPeerTellsAll(t *testing.T) {
	_, s := sessions(t, "wrong-0", "wrong-1", "wrong-2")
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	sw := &mem.Switch{}
	ended := []<-chan error{}
	for i := range s {
		ended = append(ended, begin(t, ctx, sw, s[i], fmt.Sprintf("right-%d", i)))
	}
	for i := range s {
		err := endOf(t, ended[i])
		if !strings.Contains(err.Error(), "cannot reach node 0 at "+s[0].Members()[0].Addr+": nobody listens there") {
			t.Errorf("node %d ended with %v", i, err)
		}
		var apart *coord.PartitionError
		if !errors.As(s[i].Err(), &apart) || errors.Is(s[i].Err(), coord.ErrFailed) {
			t.Errorf("the session of node %d ended with %v, want a *coord.PartitionError, which blames no node", i, s[i].Err())
		}
	}
}

func TestACanceledStartTellsNobody(t *testing.T) {
	_, s := sessions(t, "a", "b")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := begin(t, ctx, &mem.Switch{}, s[0], "a")
	why := errors.New("something better to do")
	cancel(why)
	if err := endOf(t, ended); !errors.Is(err, why) {
		t.Errorf("the start ended with %v, want %v", err, why)
	}
	if err := s[1].Err(); err != nil {
		t.Errorf("the other node was told %v", err)
	}
}
