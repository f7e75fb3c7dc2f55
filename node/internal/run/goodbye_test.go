package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// leave has a run end well, and returns what is told when it has.
func leave(r *Run, ctx context.Context, barrier func(context.Context, string) error) <-chan error {
	left := make(chan error, 1)
	go func() { left <- r.Leave(ctx, barrier, roomtest.Patience) }()
	return left
}

// carry waits for the goodbye that a run says to another, and hands it over.
func carry(t *testing.T, from, to *Run) {
	t.Helper()
	var f []byte
	roomtest.Eventually(t, "a goodbye", func() bool {
		f = from.links.To(to.links.Self).Take(nil)
		return len(f) > 0
	})
	roomtest.Must(t, to.Goodbye(from.links.Self, f))
}

// A node that is through the last barrier leaves when all others have said goodbye, and no
// earlier. Whom its coordinator answers late is told by theirs.
func TestANodeLeavesWhenItHasHeardEverybodysGoodbye(t *testing.T) {
	ctx := roomtest.Background(t)
	ss := sessions(t, 3)
	rs := []*Run{runOf(t, ss[0]), runOf(t, ss[1]), runOf(t, ss[2])}
	late := func(ctx context.Context, name string) error {
		if err := ss[0].Barrier(ctx, name); err != nil {
			return err
		}
		<-ctx.Done() // its answer is on its way for ever
		return context.Cause(ctx)
	}
	ends := []<-chan error{leave(rs[0], ctx, late), leave(rs[1], ctx, ss[1].Barrier), leave(rs[2], ctx, ss[2].Barrier)}
	for _, r := range rs[1:] {
		<-r.Over()
	}
	select {
	case <-rs[0].Over():
		t.Error("node 0 knows of the end before anybody tells it")
	default:
	}
	carry(t, rs[1], rs[0])
	<-rs[0].Over()
	carry(t, rs[0], rs[1])
	carry(t, rs[0], rs[2])
	for i, end := range ends {
		select {
		case err := <-end:
			t.Errorf("node %d left with %v before it had heard everybody's goodbye", i, err)
		default:
		}
	}
	carry(t, rs[2], rs[0])
	carry(t, rs[2], rs[1])
	roomtest.Must(t, <-ends[0])
	roomtest.Must(t, <-ends[1])
	rs[2].Lost(1, errors.New("end of file")) // nothing more comes from who said nothing either
	roomtest.Must(t, <-ends[2])
	for i, r := range rs {
		if err := r.host.Err(); err != nil {
			t.Errorf("node %d, which left well, ended with %v", i, err)
		}
	}
}

func TestAGoodbyeThatCannotBeIsRefused(t *testing.T) {
	r := runOf(t, sessions(t, 2)[0])
	for what, frame := range map[string][]byte{"before this node had come": wire.Goodbye(1), "frame": wire.Goodbye(1)[:7]} {
		if err := r.Goodbye(1, frame); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("it is taken with %v, want an error with %q", err, what)
		}
	}
}

// Who waits for the others in vain does not say goodbye.
func TestANodeThatIsNotWaitedForSaysNoGoodbye(t *testing.T) {
	r := runOf(t, sessions(t, 2)[0])
	why := errors.New("the coordinator is on holiday")
	if err := r.Leave(roomtest.Background(t), func(context.Context, string) error { return why }, roomtest.Patience); !errors.Is(err, why) {
		t.Errorf("it leaves with %v, want %v", err, why)
	}
	if f := r.links.To(1).Take(nil); len(f) > 0 {
		t.Errorf("it says %x", f)
	}
}

// A goodbye tells at once that all have come to the end, before this node's own wait has ended,
// and counts once, whatever becomes of its connection.
func TestAGoodbyeCountsOnce(t *testing.T) {
	r := runOf(t, sessions(t, 3)[0])
	come, goOn := make(chan struct{}), make(chan struct{})
	left := leave(r, roomtest.Background(t), func(context.Context, string) error { close(come); <-goOn; return nil })
	<-come
	roomtest.Must(t, r.Goodbye(1, wire.Goodbye(1)))
	if !r.parting.isComplete() {
		t.Error("who has heard a goodbye does not know that all have come to the end")
	}
	r.Lost(1, errors.New("end of file"))
	select {
	case <-r.parting.quiet:
		t.Error("node 2, which has said nothing, is not waited for")
	default:
	}
	r.Lost(2, errors.New("end of file"))
	close(goOn)
	roomtest.Must(t, <-left)
}
