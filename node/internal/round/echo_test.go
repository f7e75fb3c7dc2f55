package round

import (
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
)

// An echo is asked for behind the next round, by whoever joined it until then, and has come with the answers to it or to a later one.
func TestAnEchoComesWithTheAnswersOfAllPeers(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	first := n.Echoes.join()
	if n.Echoes.join() != first {
		t.Error("two that wait for the same round have an echo each")
	}
	if echoes, _ := n.Echoes.Pending(); echoes != 1 {
		t.Errorf("%d echoes are pending", echoes)
	}
	n.Echoes.Answered(1, first.id) // before anybody was asked
	n.Round()
	second := n.Echoes.join()
	n.Round()
	n.Round()
	if ops := n.ops(t, wire.RoundMark); len(ops) != 2 || ops[0] != first.id || ops[1] != second.id {
		t.Fatalf("the peer is asked for %v, want %d and %d", ops, first.id, second.id)
	}
	if n.Echoes.Answered(1, first.id-1); first.come() {
		t.Error("an echo has come with the answer to an earlier question")
	}
	n.Echoes.Answered(0, first.id)
	n.Echoes.Answered(1, first.id)
	if n.Echoes.Answered(1, first.id); !first.come() || second.come() {
		t.Errorf("with the first answer, the first has come: %v, and the second: %v", first.come(), second.come())
	}
	third := n.Echoes.join()
	n.Round()
	if n.Echoes.Answered(1, third.id); !second.come() || !third.come() {
		t.Error("an answer is none to what was asked before")
	}
	if echoes, _ := n.Echoes.Pending(); echoes != 0 {
		t.Errorf("%d echoes are pending", echoes)
	}
}

// A peer's question is answered behind the round after it: what had to stay for lack of room does not keep the answer. Several
// questions of a peer have one answer.
func TestAPeersQuestionIsAnsweredBehindARound(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	n.Echoes.Marked(1, 7)
	n.Echoes.Marked(1, 9)
	n.Echoes.Marked(1, 8)
	if _, nodes := n.Echoes.Pending(); nodes != 1 {
		t.Errorf("%d nodes wait for an answer", nodes)
	}
	n.Round()
	if recs := n.sent(t); len(recs) != 1 || recs[0].Kind != wire.RoundDone || recs[0].Op != 9 {
		t.Errorf("the peer is sent %v, want one answer to question 9", recs)
	}
	if n.Round(); len(n.sent(t)) > 0 {
		t.Error("the peer is answered again")
	}
}

// Where a policy's rate has the shards wait, so do the answers and the questions, unless a worker waits.
func TestEchoesWaitForARoundOverTheShards(t *testing.T) {
	n := held(t, host.Usual, Config{Rate: 1e-3, Copies: true})
	a := n.rows.Access()
	push := func() { a.Serve(wire.Push, []godwit.Key{n.key}, []float32{1}) }
	push()
	n.Round()
	n.sent(t)
	n.clocks[0].Advance() // the workers have set up
	n.synced = n.host.Now()
	if push(); n.rows.Idle() {
		t.Fatal("nothing waits for a round")
	}
	n.Echoes.Marked(1, 7)
	n.Echoes.join()
	if !n.Round() {
		t.Error("nothing is left for the next round")
	}
	for _, r := range n.sent(t) {
		if r.Kind == wire.RoundDone || r.Kind == wire.RoundMark {
			t.Errorf("%v was sent, though the round did not go over the shards", r.Kind)
		}
	}
	defer n.Echoes.Await()()
	n.Round()
	got := map[wire.Kind]int{}
	for _, r := range n.sent(t) {
		got[r.Kind]++
	}
	if got[wire.RoundDone] != 1 || got[wire.RoundMark] != 1 {
		t.Errorf("a worker waits, and %v was sent", got)
	}
}

// A worker makes as many steps as its bound since the last echo that has come began, and waits for the one that lets it go on.
func TestAWorkerMakesSoManyStepsWhileNothingComes(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	var a Age
	clock, asked := godwit.Clock(10), []uint64(nil)
	advance := func(to godwit.Clock) {
		for clock < to {
			clock++
			a.Advanced(clock)
			n.Round()
			asked = append(asked, n.ops(t, wire.RoundMark)...)
		}
	}
	if advance(100); len(asked) > 0 || a.Over(clock) != nil {
		t.Fatal("a worker without a bound asks, or waits")
	}
	const most = 16
	a.Bound(n.Echoes, most, clock)
	for clock < 100+most {
		if advance(clock + 1); a.Over(clock) != nil {
			t.Fatalf("it waits at clock %d", clock)
		}
	}
	advance(clock + 1)
	wait := a.Over(clock)
	if wait == nil {
		t.Fatal("it does not wait")
	}
	if what, peer := a.Behind(); peer != 1 || !strings.Contains(what, "node 1 since clock 102") {
		t.Errorf("it waits for node %d: %q", peer, what)
	}
	if advance(clock + 50); len(asked) != underWay {
		t.Fatalf("%d echoes are under way, want %d at the most", len(asked), underWay)
	}
	n.Echoes.Answered(1, asked[len(asked)-1])
	select {
	case <-wait:
	default:
		t.Error("it waits still")
	}
	// They began at clocks 102, 104 … 116: that is too long ago by now, and the next Advance asks anew.
	if a.Advanced(clock); a.since != 100+most || len(a.under) != 1 {
		t.Errorf("the last that came began at clock %d, and %d are under way", a.since, len(a.under))
	}
	for _, none := range []godwit.Clock{0, -1} {
		if a.Bound(n.Echoes, none, clock); a.Over(clock) != nil {
			t.Error("it waits without a bound")
		}
	}
	a.Bound(n.Echoes, godwit.Forever, clock)
	if a.Advanced(clock + 1); a.Over(clock+1) != nil || len(a.under) > 0 {
		t.Error("it waits, or asks, with a bound that it never comes to")
	}
}

// A bound that is narrowed holds from then on, though the echoes that are under way began too long ago.
func TestANarrowerBoundHoldsAtOnce(t *testing.T) {
	for _, under := range []int{2, underWay} {
		n := nodeOf(t, host.Usual, Config{Copies: true})
		var a Age
		a.Bound(n.Echoes, 800, 0)
		clock, asked := godwit.Clock(0), []uint64(nil)
		round := func() {
			n.Round()
			asked = append(asked, n.ops(t, wire.RoundMark)...)
		}
		for len(a.under) < under || clock-a.under[len(a.under)-1].at < 20 {
			clock++
			a.Advanced(clock)
			round()
		}
		const narrow = 8
		a.Bound(n.Echoes, narrow, clock)
		for range 100 {
			clock++
			a.Advanced(clock)
			if a.Over(clock) == nil || len(a.under) > underWay {
				t.Fatalf("with %d echoes under way, the worker does not wait at clock %d, or has %d under way", under, clock, len(a.under))
			}
		}
		for i := 0; a.Over(clock) != nil; i++ {
			if round(); i < len(asked) {
				n.Echoes.Answered(1, asked[i])
			}
			if i > 3*underWay {
				t.Fatalf("with %d echoes under way, the worker waits still after all of %d were answered", under, len(asked))
			}
		}
		if clock-a.since > narrow {
			t.Errorf("with %d echoes under way, the worker goes on at clock %d though the last echo that came began at %d", under, clock, a.since)
		}
		// One that has come is enough, whatever else is under way.
		for asked = nil; a.Over(clock) == nil; round() {
			clock++
			a.Advanced(clock)
		}
		n.Echoes.Answered(1, asked[0])
		if a.Over(clock) != nil || len(a.under) == 0 {
			t.Errorf("the worker waits at clock %d though an echo of clock %d has come; %d are under way", clock, a.since, len(a.under))
		}
	}
}

// Where nobody makes copies, nothing that is read is old.
func TestNobodyAsksWhereThereAreNoCopies(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	var a Age
	a.Bound(n.Echoes, 1, 0)
	for clock := godwit.Clock(1); clock < 10; clock++ {
		a.Advanced(clock)
		if n.Round(); len(n.ops(t, wire.RoundMark)) > 0 || a.Over(clock) != nil {
			t.Fatalf("the worker asks or waits at clock %d", clock)
		}
	}
}

// A round begins for an echo that nobody waits for yet, and at once where a worker waits, for that or in a WaitSync.
func TestWhatIsAskedForBringsARound(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	got := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	got(n.bell.Rung())
	n.bell.Awake()
	var a Age
	a.Bound(n.Echoes, 1, 0)
	if a.Advanced(1); !got(n.bell.Rung()) {
		t.Error("a worker wants an echo, and no round begins")
	}
	n.bell.Awake()
	if got(n.bell.Hurried()) {
		t.Error("a round hurries for an echo that nobody waits for")
	}
	end := n.Echoes.Await()
	if !got(n.bell.Rung()) || !got(n.bell.Hurried()) || !n.Echoes.Urgent() {
		t.Error("a worker waits for an echo, and no round hurries")
	}
	if end(); n.Echoes.Urgent() {
		t.Error("rounds follow each other, and nobody waits")
	}
	n.bell.Awake()
	if n.Sync.Begin(0); !got(n.bell.Rung()) || !got(n.bell.Hurried()) {
		t.Error("a worker begins a WaitSync, and no round hurries")
	}
}

// What waits is said to be this node's round as long as nobody was asked.
func TestAWorkerWaitsForARoundOfItsOwnNodeFirst(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	var a Age
	a.Bound(n.Echoes, 1, 0)
	a.Advanced(1)
	a.Advanced(2)
	if a.Over(2) == nil {
		t.Fatal("it does not wait")
	}
	if what, peer := a.Behind(); peer != godwit.NoNode || !strings.Contains(what, "this node since clock 1") {
		t.Errorf("it waits for node %d: %q", peer, what)
	}
}

// Each of several peers has to answer: two answers of one are none of another.
func TestAnEchoNeedsTheAnswerOfEachPeer(t *testing.T) {
	r := replicatedOf(t, host.Real(), host.Usual, 4, 2, 1, 1, true)
	first := r.Echoes.join()
	r.Round()
	second := r.Echoes.join()
	r.Round()
	r.Echoes.Answered(1, first.id)
	if r.Echoes.Answered(1, second.id); first.come() || second.come() {
		t.Errorf("without a word of node 2, the first echo has come: %v, and the second: %v", first.come(), second.come())
	}
	if r.Echoes.Answered(2, second.id); !first.come() || !second.come() {
		t.Errorf("with the answers of both peers, the first echo has come: %v, and the second: %v", first.come(), second.come())
	}
}

// An echo that a round could not ask for is left for the next one.
func TestAnEchoThatWasNotAskedForIsLeft(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	n.Echoes.join()
	n.Echoes.Open(&n.out)
	if !n.Echoes.Close(&n.out, false, false) {
		t.Error("a round that sends nothing leaves no echo, though a worker wants one")
	}
	n.Echoes.Open(&n.out)
	if n.Echoes.Close(&n.out, true, false) {
		t.Error("an echo is left that was asked for")
	}
}
