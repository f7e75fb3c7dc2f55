package run

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
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/transport/mem"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// sessions returns those of a run of so many nodes, by id. The address of node i is the
// i-th letter.
func sessions(t *testing.T, nodes int) []coord.Session {
	t.Helper()
	hub, err := cmem.New(coord.Config{Run: "test", Nodes: nodes})
	roomtest.Must(t, err)
	ss := make([]coord.Session, nodes)
	joined := make(chan error, nodes)
	for i := range nodes {
		go func() {
			s, err := hub.Join(roomtest.Background(t), string(rune('a'+i)))
			if err == nil {
				ss[s.Self()] = s
			}
			joined <- err
		}()
	}
	for range nodes {
		roomtest.Must(t, <-joined)
	}
	for _, s := range ss {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return ss
}

// runOf returns the run of a node whose links are queues.
func runOf(t *testing.T, s coord.Session) *Run {
	t.Helper()
	h := host.New(host.Real())
	ls := link.New(h, s.Self(), len(s.Members()), s.View(), host.Usual, filter.Compress{}, host.NewBell())
	for i := range ls.Nodes() {
		if id := godwit.NodeID(i); id != s.Self() {
			ls.Imagine(id, func() {})
		}
	}
	t.Cleanup(func() { h.Halt(); h.Join() })
	return New(h, ls, s, s.Cause, s.Members())
}

// A peer whose connection ends without a goodbye is lost, here and for the others, who hear
// of it by an error of the same type.
func TestAConnectionThatEndsWithoutAGoodbyeHasLostItsNode(t *testing.T) {
	ss := sessions(t, 3)
	r := runOf(t, ss[0])
	why := errors.New("cable cut")
	r.Lost(2, why)
	if err := r.host.Err(); !errors.Is(err, why) {
		t.Errorf("the run ended with %v, want %v", err, why)
	}
	for where, err := range map[string]error{"here": r.host.Err(), "at another": ss[1].Err()} {
		var who *coord.MemberError
		if !errors.As(err, &who) || who.Member != r.members[2] || !errors.Is(err, godwit.ErrPeerLost) || !strings.HasPrefix(err.Error(), who.Member.String()+": node lost: connection ended: cable cut") {
			t.Errorf("%s, the run ended with %v", where, err)
		}
	}
}

// Why a peer was lost is what the session says.
func TestTheSessionSaysWhyAPeerWasLost(t *testing.T) {
	r := runOf(t, sessions(t, 2)[0])
	r.cause = func(lost *coord.MemberError) error { return fmt.Errorf("%w: behind %w", coord.ErrCoordinator, lost) }
	r.Broke(1, errors.New("bad frame"))
	if err := r.host.Err(); !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "behind "+r.members[1].String()) {
		t.Errorf("the run ended with %v", err)
	}
}

// A better reason than that a connection ended is waited for.
func TestAConnectionThatEndsWaitsForABetterReason(t *testing.T) {
	ss := sessions(t, 2)
	r := runOf(t, ss[0])
	r.host.World = patient{r.host.World}
	r.host.Go(r.Watch)
	r.host.Go(func() { ss[1].Fail(errors.New("out of cheese")) })
	r.Lost(1, errors.New("end of file"))
	if err := r.host.Err(); err == nil || !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("the run ended with %v, want what node 1 says", err)
	}
	if r.parting.still[1] {
		t.Error("something may still come over the connection that ended")
	}
}

// A patient world is real, other than that who waits for some time does so until what it waits for has come.
type patient struct{ host.World }

func (w patient) Sleep(_ time.Duration, a, b <-chan struct{}) int {
	return w.World.Sleep(roomtest.Patience, a, b)
}

// The first reason counts, and the end of a node that is being closed is nobody's fault.
func TestWhatEndsARun(t *testing.T) {
	bad, cut := errors.New("bad frame"), &coord.PartitionError{Text: "nodes 0 and 1 do not reach each other"}
	for what, x := range map[string]struct {
		do    func(r *Run)
		says  string // of the node's error
		tells string // the other node; "": nothing
	}{
		"a peer breaks the protocol": {func(r *Run) { r.Broke(1, bad) }, "broke the protocol: bad frame", "broke the protocol: bad frame"},
		"nodes do not meet":          {func(r *Run) { r.Split(cut) }, cut.Text, cut.Text},
		"an error of this node":      {func(r *Run) { r.Fail(bad) }, "bad frame", "bad frame"},
		"a frame after the close":    {func(r *Run) { r.Close(); r.Broke(1, bad) }, godwit.ErrClosed.Error(), ""},
		"a verdict after the close":  {func(r *Run) { r.Close(); r.Split(cut) }, godwit.ErrClosed.Error(), ""},
		"a frame after the end":      {func(r *Run) { r.parting.complete(); r.Broke(1, bad); r.Split(cut); r.Lost(1, bad) }, "", ""},
	} {
		ss := sessions(t, 2)
		h := host.New(host.Real())
		r := New(h, link.New(h, 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell()), ss[0], ss[0].Cause, ss[0].Members())
		x.do(r)
		h.Join()
		if halted := h.Life().Err() != nil; halted != strings.Contains(what, "after the close") {
			t.Errorf("%s: the node's goroutines are to end: %v", what, halted)
		}
		for who, got := range map[string]struct {
			err  error
			says string
		}{"this node": {h.Err(), x.says}, "the other": {ss[1].Err(), x.tells}} {
			if (got.err == nil) != (got.says == "") || got.err != nil && !strings.Contains(got.err.Error(), got.says) {
				t.Errorf("%s: %s hears %v, want %q", what, who, got.err, got.says)
			}
		}
	}
}

// Nodes meet over a network, and know of each other what they said.
func TestMembersMeet(t *testing.T) {
	const nodes = 3
	ctx, sw := roomtest.Background(t), &mem.Switch{}
	ss := sessions(t, nodes)
	met := make(chan error, nodes)
	for _, s := range ss {
		l, err := sw.Listen(s.Members()[s.Self()].Addr)
		roomtest.Must(t, err)
		t.Cleanup(func() { l.Close() })
		r := runOf(t, s)
		go func() {
			conns, err := r.Meet(ctx, Mesh{Network: sw, Listener: l, Run: "test", Secret: s.Secret()})
			for id, c := range conns {
				if p := c.Peer(); p.From != id || p.Features != takes || p.Incarnation != s.Members()[id].Incarnation {
					err = errors.Join(err, errors.New("a peer is not who it should be"))
				}
				c.Close()
			}
			if err == nil && len(conns) != nodes-1 {
				err = errors.New("somebody is missing")
			}
			met <- err
		}()
	}
	for range nodes {
		roomtest.Must(t, <-met)
	}
}

// A node that waits for its peers hears that the run is over; one whose time is over tells
// the others whom it cannot reach; one that is canceled tells nobody.
func TestAMeetingThatFails(t *testing.T) {
	for what, x := range map[string]struct {
		ctx   func() (context.Context, context.CancelFunc)
		fail  error
		is    error
		tells bool
	}{
		"the run is over":  {func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }, errors.New("out of cheese"), godwit.ErrPeerLost, true},
		"time is over":     {func() (context.Context, context.CancelFunc) { return context.WithTimeout(context.Background(), 1) }, nil, context.DeadlineExceeded, true},
		"it is called off": {func() (context.Context, context.CancelFunc) { return canceled(), func() {} }, nil, context.Canceled, false},
	} {
		ss, sw := sessions(t, 2), &mem.Switch{}
		l, err := sw.Listen(ss[0].Members()[0].Addr)
		roomtest.Must(t, err)
		ctx, cancel := x.ctx()
		if x.fail != nil {
			ss[1].Fail(x.fail)
		}
		_, err = runOf(t, ss[0]).Meet(ctx, Mesh{Network: sw, Listener: l, Run: "test", Secret: ss[0].Secret()})
		cancel()
		l.Close()
		if !errors.Is(err, x.is) || x.fail != nil && !strings.Contains(err.Error(), x.fail.Error()) {
			t.Errorf("%s: %v, want %v", what, err, x.is)
		}
		if told := ss[1].Err(); (told != nil) != x.tells {
			t.Errorf("%s: the other node was told %v", what, told)
		}
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
