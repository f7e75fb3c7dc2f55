package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

func membersOf(n int) []coord.Member {
	ms := make([]coord.Member, n)
	for i := range ms {
		ms[i] = coord.Member{ID: godwit.NodeID(i), Addr: fmt.Sprintf("host%d:1", i), Incarnation: 1}
	}
	return ms
}

// mute is a publish whose messages never get their place.
func mute(ctx context.Context, _ Message) error { return nil }

func TestArrivalsThatCannotBeHaveNoEffect(t *testing.T) {
	l := New(0, membersOf(2), nil, time.Second, mute)
	at := Message{Kind: Barrier, Name: "b", Gen: 1}
	l.Apply(7, at)                   // no member
	l.Lost(7, "no member")           //
	l.Apply(7, Message{Kind: Fail})  //
	l.Apply(1, at)                   // the only one that counts
	l.Apply(1, at)                   // sent twice, after a lost answer
	l.Apply(1, Message{Kind: "new"}) // unknown
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Barrier(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "node 0 (host0:1) did not") || strings.Contains(err.Error(), "node 1") {
		t.Errorf("got %v, want that only this node is missing", err)
	}
	l.Apply(0, at)
	if err := l.Barrier(t.Context(), "b"); err != nil {
		t.Errorf("got %v after all arrived", err)
	}
	l.Apply(1, at) // of a barrier that is over
	if len(l.open) != 0 {
		t.Errorf("%d gatherings are left open", len(l.open))
	}
}

func TestANodeMayBeOneBarrierAhead(t *testing.T) {
	l := New(0, membersOf(2), nil, time.Second, mute)
	for gen := range uint64(3) {
		l.Apply(0, Message{Kind: Barrier, Name: "b", Gen: gen + 1})
		l.Apply(1, Message{Kind: Barrier, Name: "b", Gen: gen + 1})
	}
	for i := range 3 {
		if err := l.Barrier(t.Context(), "b"); err != nil {
			t.Fatalf("barrier %d: %v", i, err)
		}
	}
}

func TestAPublishThatFailsNamesWhoIsMissing(t *testing.T) {
	cause := errors.New("no way")
	l := New(0, membersOf(20), nil, time.Second, func(context.Context, Message) error { return cause })
	err := l.Barrier(t.Context(), "b")
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "node 7 (host7:1) and 12 more did not arrive") {
		t.Errorf("got %v", err)
	}
	if err := l.RequestStop(t.Context(), "r"); !errors.Is(err, cause) {
		t.Errorf("stop: got %v, want %v", err, cause)
	}
}

func TestALostNodeIsNotTakenForOneThatLeft(t *testing.T) {
	for range 100 { // of two channels that are ready, select takes any
		var l *Ledger
		l = New(0, membersOf(2), nil, time.Second, func(_ context.Context, w Message) error {
			l.Lost(1, "gone dark")
			l.Apply(0, w)
			return nil
		})
		if err := l.Barrier(t.Context(), "b"); !errors.Is(err, godwit.ErrPeerLost) || errors.Is(err, coord.ErrLeft) {
			t.Fatalf("got %v, want %v", err, godwit.ErrPeerLost)
		}
	}
}

// The state that members share is a function of the order: whatever is said,
// all of them tell the same story.
func TestAllLedgersTellTheSameStory(t *testing.T) {
	r := seedtest.Rand(t)
	kinds := []Kind{Barrier, Exchange, Stop, Leave, Barrier, Exchange, Barrier, Exchange, Fail}
	for range 200 {
		const n = 4
		var ls []*Ledger
		for i := range n {
			ls = append(ls, New(godwit.NodeID(i), membersOf(n), nil, time.Second, mute))
		}
		for range 30 {
			from := godwit.NodeID(r.IntN(n))
			w := Message{Kind: kinds[r.IntN(len(kinds))], Name: strconv.Itoa(r.IntN(2)), Gen: 1 + r.Uint64N(3), Text: strconv.Itoa(r.Int())}
			lost := r.IntN(20) == 0
			for _, l := range ls {
				if lost {
					l.Lost(from, w.Text)
				} else {
					l.Apply(from, w)
				}
			}
		}
		for i, l := range ls {
			if fmt.Sprint(l.Err(), l.StopReason(), l.View(), l.gone, len(l.open)) != fmt.Sprint(ls[0].Err(), ls[0].StopReason(), ls[0].View(), ls[0].gone, len(ls[0].open)) {
				t.Fatalf("node %d says %v, %q, %d; node 0 says %v, %q, %d", i, l.Err(), l.StopReason(), l.View(), ls[0].Err(), ls[0].StopReason(), ls[0].View())
			}
		}
	}
}

func TestCollectivesThatCannotBeAreRefused(t *testing.T) {
	l := New(0, membersOf(2), nil, time.Second, mute)
	long := strings.Repeat("n", coord.MaxName)
	for name, says := range map[string]string{"": "0 bytes", long + "n": "want 1 …", "a\xff": "UTF-8"} {
		if err := l.Barrier(t.Context(), name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("barrier %.10q: %v", name, err)
		}
	}
	if _, err := l.Exchange(t.Context(), "e", make([]byte, coord.MaxPayload+1)); err == nil || !strings.Contains(err.Error(), "send less") {
		t.Errorf("a long payload: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- l.Barrier(ctx, long) }()
	busy := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		p := l.collectives[collective{Barrier, long}]
		return p != nil && p.busy
	}
	for !busy() {
		time.Sleep(time.Millisecond)
	}
	if err := l.Barrier(t.Context(), long); err == nil || !strings.Contains(err.Error(), "different names") {
		t.Errorf("two calls at once: %v", err)
	}
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("the first call: %v", err)
	}
}

// Who waits for one that has left hears who that is, also when the call comes after it.
func TestWhoLeftIsNamed(t *testing.T) {
	l := New(0, membersOf(3), nil, time.Second, mute)
	l.Apply(2, Message{Kind: Leave})
	for range 2 {
		err := l.Barrier(t.Context(), "b")
		if !errors.Is(err, coord.ErrLeft) || !strings.Contains(err.Error(), "node 2 (host2:1) did not arrive") || strings.Contains(err.Error(), "host1") {
			t.Errorf("the error is %v", err)
		}
	}
	l.Lost(2, "gone") // it has left already
	l.Lost(3, "no member")
	l.Apply(3, Message{Kind: Fail})
	if l.Err() != nil || l.View() != 1 {
		t.Errorf("the run has ended: %v, view %d", l.Err(), l.View())
	}
}

// What a node says of a failure, and what it shows of it itself.
func TestAFailureIsToldByItsKind(t *testing.T) {
	members := membersOf(2)
	lost := &coord.MemberError{Member: members[1], Err: fmt.Errorf("%w: cable cut", godwit.ErrPeerLost)}
	stranger := &coord.MemberError{Member: coord.Member{ID: 1, Addr: "other:1"}, Err: godwit.ErrPeerLost}
	for _, c := range []struct {
		err  error
		kind Kind
		lost bool
		says string
	}{
		{nil, Fail, false, "no cause given"},
		{errors.New("disk full"), Fail, false, "disk full"},
		{&coord.PartitionError{Text: "1 and 2"}, Partition, false, "1 and 2"},
		{lost, Fail, true, "cable cut"},
		{stranger, Fail, false, "other:1"}, // of another run
	} {
		var told Message
		l := New(0, members, nil, time.Second, func(_ context.Context, m Message) error { told = m; return nil })
		l.Fail(c.err)
		if told.Kind != c.kind || (told.Lost != nil) != c.lost || !strings.Contains(told.Text, c.says) {
			t.Errorf("%v is told as %+v", c.err, told)
		}
		var failed *coord.MemberError
		switch err := l.Err(); {
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%v ends the run by %v", c.err, err)
		case c.kind == Fail && (!errors.As(err, &failed) || (failed.Member.ID == 1) != c.lost):
			t.Errorf("%v ends the run by %v", c.err, err)
		}
	}
}

func TestTheFailureOfAnotherEndsTheRun(t *testing.T) {
	l := New(0, membersOf(3), nil, time.Second, mute)
	l.Apply(2, Message{Kind: Fail, Text: "disk full"})
	var failed *coord.MemberError
	if err := l.Err(); !errors.As(err, &failed) || failed.Member.ID != 2 || !errors.Is(err, coord.ErrFailed) || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

func TestAMemberIsLostOnce(t *testing.T) {
	l := New(0, membersOf(3), nil, time.Second, mute)
	for range 2 {
		l.Lost(1, "cable cut")
	}
	if v := l.View(); v != 2 {
		t.Errorf("the view is %d behind the first loss, want 2", v)
	}
}

func TestAStopIsAskedForOnce(t *testing.T) {
	asked := 0
	var l *Ledger
	l = New(0, membersOf(1), nil, time.Second, func(_ context.Context, m Message) error {
		asked++
		l.Apply(0, m)
		return nil
	})
	for _, why := range []string{"first", "second"} {
		if err := l.RequestStop(t.Context(), why); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 || l.StopReason() != "first" {
		t.Errorf("asked for %d times, because of %q", asked, l.StopReason())
	}
	l = New(0, membersOf(1), nil, time.Second, mute)
	l.End(godwit.ErrClosed)
	if err := l.RequestStop(t.Context(), "late"); !errors.Is(err, godwit.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
