package staleness

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// boundOf returns the bound of node 0 of two, with a worker and a table that bounds its
// reads by so many clocks.
func boundOf(t *testing.T, s godwit.Bound, policy placement.Policy) *Bound {
	return boundAt(t, 0, s, policy)
}

// boundAt is boundOf of a node.
func boundAt(t *testing.T, self godwit.NodeID, s godwit.Bound, policy placement.Policy) *Bound {
	cfg := roomtest.Protocol(t, self, 2, policy, 4, godwit.Table{Name: "t", Rows: 100, Dim: 1, Staleness: s})
	h, bell := host.New(host.Real()), host.NewBell()
	limits := host.Usual
	limits.Ahead = 100
	ls := link.New(h, self, 2, 1, limits, filter.Compress{}, bell)
	ls.Imagine(1-self, func() {})
	rows, err := shards.New(cfg, 0, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	return New(Config{Host: h, Links: ls, Rows: rows, Ops: operation.New(cfg.Model, 0, 1, limits), Clocks: tick.NewClocks(0, 1, 0), Rounds: bell, IDs: new(atomic.Uint64), Proto: cfg, Start: tick.First(0)})
}

// rounds lets a bound settle and tell, and returns what the peer hears.
func rounds(t *testing.T, b *Bound) []wire.Record {
	out := b.links.Sender()
	for range 3 {
		b.Open(&out)
		b.Close(&out, true, false)
	}
	out.Flush()
	return roomtest.Records(t, &wire.Decoder{Lists: &wire.Known{}}, b.links.To(1).Take)
}

func advance(b *Bound) {
	b.clocks[0].Advance()
	b.Advance(b.clocks[0])
}

// A read waits for the horizon, which is where the slowest node has settled, and goes on
// when that node's word comes.
func TestAReadWaitsForTheSlowestNode(t *testing.T) {
	b := boundOf(t, godwit.Within(1), placement.Static)
	w, keys := b.Waiter(0), []godwit.Key{3}
	advance(b)
	if !b.Allows(w, keys) {
		t.Error("a read waits one clock ahead of the others, under the bound 1")
	}
	advance(b)
	if b.Allows(w, keys) || !b.Await(w, keys) {
		t.Fatal("a read two clocks ahead of the others does not wait")
	}
	told := rounds(t, b)
	if n := len(told); n == 0 || tick.Tick(told[n-1].Op) != tick.First(0).At(2) {
		t.Errorf("the peer is told %v, want that clock 2 is settled", told)
	}
	out := b.links.Sender()
	roomtest.Must(t, b.Told(&out, 1, &wire.Record{Kind: wire.Settled, Op: uint64(tick.First(0).At(1)), Seq: uint64(tick.First(0)), Version: godwit.Version(tick.First(0))}))
	select {
	case <-w.Granted:
	default:
		t.Error("the word of the slowest node lets nobody go on")
	}
	if b.Await(w, keys) || !b.Allows(w, keys) {
		t.Error("the read waits though the horizon is there")
	}
}

// Where replicas are read, the owners' word that these contain everything is needed too.
func TestReplicasNeedTheWordOfTheirOwners(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Adaptive)
	w, keys := b.Waiter(0), []godwit.Key{3}
	advance(b)
	rounds(t, b)
	out := b.links.Sender()
	word := wire.Record{Kind: wire.Settled, Op: uint64(tick.First(0).At(1)), Seq: uint64(tick.First(0)), Version: godwit.Version(tick.First(0))}
	roomtest.Must(t, b.Told(&out, 1, &word))
	if b.Allows(w, keys) {
		t.Error("a read does not wait for the refreshes of node 1")
	}
	for here, due := range map[bool]bool{true: false, false: true} {
		if b.due(&early{at: tick.First(0).At(1), here: here}) != due {
			t.Errorf("a pull that waits here, of a key that may be read at a replica: %v; it is due: %v", here, !due)
		}
	}
	if who, peer := b.Behind(tick.First(0).At(1)); peer != 1 || !strings.Contains(who, "has not refreshed") {
		t.Errorf("node %d is behind: %s", peer, who)
	}
	word.Seq = word.Op
	roomtest.Must(t, b.Told(&out, 1, &word))
	if !b.Allows(w, keys) {
		t.Error("a read waits though everything is here")
	}
}

// A wait that is given up leaves nobody waiting.
func TestAWaitThatIsForsakenIsOver(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Static)
	w := b.Waiter(0)
	advance(b)
	if !b.Await(w, []godwit.Key{3}) {
		t.Fatal("a read ahead of the others does not wait")
	}
	if need := b.forsake(w); need != tick.First(0).At(1) {
		t.Errorf("it waited for %v", need)
	}
	if _, waits := b.Waits(w); waits || b.Resting() != nil {
		t.Errorf("it waits still: %v", b.Resting())
	}
	// The word that it waits for comes while it gives up.
	b.Await(w, []godwit.Key{3})
	b.grant(func(tick.Tick) bool { return true })
	if b.forsake(w); len(w.Granted) > 0 {
		t.Error("the next wait ends with the word that was for the one before")
	}
}

// Nobody keeps pulls of a peer without end.
func TestAPeerHasSoManyPullsWaitForATick(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Static)
	out := b.links.Sender()
	pull := func() error {
		r := wire.Record{Kind: wire.PullAfter, Key: 3, Origin: 1, Op: 1, Seq: uint64(tick.First(0).At(7))}
		later, err := b.PullAfter(&out, &r)
		if later != nil {
			t.Fatal("a pull that comes too early is served")
		}
		return err
	}
	for range 100 {
		roomtest.Must(t, pull())
	}
	if err := pull(); err == nil || !strings.Contains(err.Error(), "100 pulls of node 1") {
		t.Errorf("one too many: %v", err)
	}
	if b.Parked() != 100 {
		t.Errorf("%d pulls came too early", b.Parked())
	}
}

// A bound that changes holds at once for new reads, and peers are asked to follow.
func TestABoundMayChange(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Static)
	w, keys := b.Waiter(0), []godwit.Key{3}
	advance(b)
	if !b.Await(w, keys) {
		t.Fatal("a read ahead of the others does not wait")
	}
	out := b.links.Sender()
	roomtest.Must(t, b.Told(&out, 1, &wire.Record{Kind: wire.Rebound, Op: 9, Key: 0, Seq: 5 + 1, Version: 1 << 20}))
	if <-w.Granted; b.Await(w, keys) {
		t.Error("a read waits under the bound 5")
	}
	if limit, ok := b.Limit(0); !ok || limit != 5 {
		t.Errorf("the bound is %d, %v", limit, ok)
	}
	roomtest.Must(t, b.Told(&out, 1, &wire.Record{Kind: wire.Rebound, Op: 9, Key: 0, Seq: 1, Version: 1<<20 - 1}))
	if limit, _ := b.Limit(0); limit != 5 {
		t.Errorf("an older change sets the bound to %d", limit)
	}
	if err := b.Told(&out, 1, &wire.Record{Kind: wire.Rebound, Op: 9, Key: 100, Seq: 1}); err == nil {
		t.Error("a bound of no table is taken")
	}
	for more, ok := range map[uint64]bool{0: true, 1: false} {
		if err := b.Told(&out, 1, &wire.Record{Kind: wire.Rebound, Op: 9, Key: 0, Seq: godwit.MaxBound + 1 + more, Version: 1 << 21}); (err == nil) != ok {
			t.Errorf("a bound of the most clocks and %d: %v", more, err)
		}
	}
}

// Who is behind: a worker, or the way of what its node has pushed. The bound is
// in no rounds here, which would read what the test writes.
func TestWhoHoldsUpOthersIsNamed(t *testing.T) {
	need := tick.First(0).At(1)
	for flying, want := range map[bool]string{true: "updates of node 1 are on their way", false: "1.0 is at clock 0"} {
		b := &Bound{links: &link.Links{}, nodes: []standing{{settled: need}, {settled: tick.First(0), flying: flying}}}
		if who, peer := b.Behind(need); peer != 1 || !strings.Contains(who, want) {
			t.Errorf("updates under way: %v: %q, node %d is named", flying, who, peer)
		}
	}
}

// A node owes others something if somebody waits for more than it has settled, and
// its workers are farther.
func TestANodeOwesWhatSomebodyWaitsForAndItsWorkersAllow(t *testing.T) {
	b := &Bound{clocks: tick.NewClocks(0, 1, 0)}
	at := func(c godwit.Clock) uint64 { return uint64(tick.First(0).At(c)) }
	for b.clocks[0].Advance(); b.clocks[0].Now() <= 5; b.clocks[0].Advance() {
		b.clocks[0].Follow()
	}
	for _, x := range []struct {
		settled, wanted godwit.Clock
		owes            bool
	}{{3, 3, false}, {3, 2, false}, {3, 4, true}, {4, 9, true}, {5, 9, false}} {
		b.settled.Store(at(x.settled))
		b.wanted.Store(at(x.wanted))
		if got := b.owes(); got != x.owes {
			t.Errorf("settled %d, wanted %d, worker at 5: owes is %v", x.settled, x.wanted, got)
		}
	}
}

// What a peer's pulls take of its bound comes back when they are served.
func TestPullsThatAreServedMakePlaceForOthers(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Static)
	out := b.links.Sender()
	for begin := godwit.Clock(0); begin < 3; begin++ {
		at := tick.First(0).At(begin + 1)
		for range 100 {
			r := wire.Record{Kind: wire.PullAfter, Key: 3, Origin: 1, Op: 1, Seq: uint64(at)}
			_, err := b.PullAfter(&out, &r)
			roomtest.Must(t, err)
		}
		roomtest.Must(t, b.Told(&out, 1, &wire.Record{Kind: wire.Settled, Op: uint64(at), Seq: uint64(at), Version: godwit.Version(at)}))
		advance(b)
		b.links.To(1).Push(make([]byte, 64<<20)) // there is no room for answers
		for _, waiting := range []int{100, 0} {
			for range 3 {
				b.Open(&out)
				b.Close(&out, true, false)
			}
			if got := b.pulls.of[1]; got != waiting || len(b.pulls.waiting) != waiting {
				t.Fatalf("%d pulls wait, which count as %d, want %d", len(b.pulls.waiting), got, waiting)
			}
			b.links.To(1).Take(nil)
		}
		if err := b.Resting(); err != nil {
			t.Fatal(err)
		}
	}
}

// Of two nodes that change a bound at the same time, one counts as the later for both.
func TestChangesOfTwoNodesAtATimeHaveAnOrder(t *testing.T) {
	var numbers [2]uint64
	for self := range numbers {
		b := boundAt(t, godwit.NodeID(self), godwit.Within(0), placement.Static)
		_, numbers[self] = b.change(7, 0, int64(self))
	}
	if numbers[0] == numbers[1] {
		t.Errorf("both changes have the number %d", numbers[0])
	}
}

// A peer for whom there was no room may lack refreshes: it is not told that its replicas contain everything.
func TestAPeerWithoutRoomIsNotToldThatItsReplicasAreFresh(t *testing.T) {
	b := boundOf(t, godwit.Within(0), placement.Adaptive)
	out := b.links.Sender()
	begin, at := tick.First(0), tick.First(0).At(1)
	advance(b)
	roomtest.Must(t, b.Told(&out, 1, &wire.Record{Kind: wire.Settled, Op: uint64(at), Seq: uint64(begin), Version: godwit.Version(begin)}))
	b.Open(&out)
	b.Close(&out, true, false)
	for _, room := range []bool{false, true} {
		want := at
		if b.links.To(1).Take(nil); !room {
			b.links.To(1).Push(make([]byte, 64<<20))
			want = begin
		}
		out.ForgetFull()
		if out.Rooms() != room {
			t.Fatalf("there is room: %v", !room)
		}
		if b.Open(&out); b.round.goal != at {
			t.Fatalf("all have settled %v, want %v", b.round.goal, at)
		}
		if b.Close(&out, true, !room); b.round.fresh[1] != want {
			t.Errorf("with room: %v, the peer is told %v, want %v", room, b.round.fresh[1], want)
		}
	}
}
