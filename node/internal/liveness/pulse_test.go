package liveness

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

const lease = 20 * time.Second

// A stoppedWorld is real, other than that time passes when the test says so.
type stoppedWorld struct {
	host.World
	now int64
}

func (w *stoppedWorld) Now() int64 { return w.now }

// pulseOf returns the pulse of a node of some that hears from nobody, and its world.
func pulseOf(self godwit.NodeID, nodes int) (*Pulse, *stoppedWorld) {
	w := &stoppedWorld{World: host.Real(), now: 1}
	h := host.New(w)
	ls := link.New(h, self, nodes, 1, host.Usual, filter.Compress{}, host.NewBell())
	members := make([]coord.Member, nodes)
	for i := range nodes {
		members[i] = coord.Member{ID: godwit.NodeID(i), Addr: "x"}
		if id := godwit.NodeID(i); id != self {
			ls.Imagine(id, func() {})
		}
	}
	p := New(h, ls, members, lease)
	p.Start(0)
	return p, w
}

// met has all peers of a pulse have said something.
func (p *Pulse) met() {
	for i := range p.peers {
		p.peers[i].met = true
	}
}

// pass lets time pass.
func (p *Pulse) pass(w *stoppedWorld, d time.Duration) {
	for ; d > 0; d -= pulseEvery {
		w.now += int64(pulseEvery)
		p.step()
	}
}

// sent has a link send so many bytes.
func sent(l *link.Link, bytes int) {
	l.Push(make([]byte, bytes))
	for len(l.Take(nil)) > 0 { // heartbeats go first
	}
}

// Time in which this process did not run does not count.
func TestAPauseOfANodeIsNotItsPeers(t *testing.T) {
	p, w := pulseOf(0, 3)
	sent(p.links.To(1), 1000) // and nothing comes back
	p.peers[1].met = true
	p.step()
	for range 5 {
		w.now += int64(lease) // stopped
		if p.step(); p.peers[1].suspected {
			t.Fatalf("after %v a peer is suspect", p.clock)
		}
	}
	for i := 0; !p.peers[1].suspected; i++ {
		if w.now += int64(pulseEvery); p.clock > lease+answerTime+pulseEvery {
			t.Fatalf("after %v a peer that does not answer is not suspect", p.clock)
		}
		p.step()
	}
	if p.clock < lease {
		t.Errorf("a peer is suspect after %v", p.clock)
	}
	if p.peers[2].suspected {
		t.Error("so is one that owes nothing")
	}
}

// A peer of which nothing came at all has as long as others may take to start.
func TestAPeerThatStartsLateIsNotSuspect(t *testing.T) {
	p, w := pulseOf(0, 2)
	const begin = time.Minute
	p.Start(begin)
	sent(p.links.To(1), 1000)
	p.pass(w, begin+lease)
	if p.peers[1].suspected {
		t.Errorf("after %v a peer is suspect that others may have kept from starting", p.clock)
	}
	p.pass(w, answerTime+2*pulseEvery)
	if !p.peers[1].suspected {
		t.Errorf("after %v a peer that never said anything is not suspect", p.clock)
	}
}

// Nor is it while the start may take as long as there is.
func TestAPeerThatMayStartWhenItLikesIsNotSuspect(t *testing.T) {
	for _, begin := range []time.Duration{math.MaxInt64, math.MaxInt64 - lease} {
		p, w := pulseOf(0, 2)
		p.Start(begin)
		sent(p.links.To(1), 1000)
		if p.pass(w, 3*lease); p.peers[1].suspected {
			t.Errorf("after %v a peer is suspect that has %v to start", p.clock, begin)
		}
	}
}

// What a peer says to have arrived is movement, though nothing else comes.
func TestAPeerThatTakesSlowlyIsNotSuspect(t *testing.T) {
	p, w := pulseOf(0, 2)
	p.met()
	sent(p.links.To(1), 1<<20)
	for i := range uint64(10) {
		p.pass(w, lease/2)
		roomtest.Must(t, p.Heartbeat(1, wire.Heartbeat{Arrived: i + 1}.Frame()))
	}
	if p.peers[1].suspected {
		t.Error("a peer is suspect at which bytes arrive")
	}
	p.pass(w, lease+answerTime+2*pulseEvery)
	if !p.peers[1].suspected {
		t.Error("a peer is not suspect at which no bytes arrive any more")
	}
}

// A peer that says that part of a long frame has come is alive, although it has
// acknowledged nothing and sent nothing else.
func TestAPartOfAFrameThatArrivesAtThePeerIsASignOfLife(t *testing.T) {
	p, _ := pulseOf(1, 2)
	sent(p.links.To(0), 1<<20)
	var l life
	for _, x := range []struct {
		at    time.Duration
		part  bool
		since time.Duration
	}{{1 * time.Second, false, 0}, {2 * time.Second, true, 2 * time.Second}, {3 * time.Second, false, 2 * time.Second}} {
		p.clock = x.at
		l.partly.Store(x.part)
		p.measure(0, &l)
		if !l.owes || l.since != x.since {
			t.Errorf("at %v, part of a frame is %v: owes is %v since %v, want since %v", x.at, x.part, l.owes, l.since, x.since)
		}
	}
}

// Over an idle connection the ends ask each other now and then, and answer: nobody is
// suspect, until what one of them says does not arrive any more.
func TestAnIdleConnectionIsAskedAbout(t *testing.T) {
	var ps [2]*Pulse
	var ws [2]*stoppedWorld
	for i := range ps {
		ps[i], ws[i] = pulseOf(godwit.NodeID(i), 2)
	}
	beats := 0
	pass := func(d time.Duration, deaf bool) {
		for ; d > 0; d -= pulseEvery {
			for i, p := range ps {
				p.pass(ws[i], pulseEvery)
				f := p.links.To(godwit.NodeID(1 - i)).Take(nil)
				if len(f) == 0 || deaf && i == 1 {
					continue
				}
				beats++
				roomtest.Must(t, ps[1-i].Heartbeat(godwit.NodeID(i), f))
			}
		}
	}
	pass(5*lease, false)
	if most := int(2 + 2*5*lease/askAfter(lease, true)); beats < 10 || beats > most {
		t.Errorf("%d heartbeats over an idle connection, want 10 … %d", beats, most)
	}
	for i, p := range ps {
		if p.peers[1-i].suspected {
			t.Errorf("node %d suspects the other, which answers", i)
		}
	}
	pass(2*lease, true)
	for i, p := range ps { // what node 1 asks and answers is lost, so each waits for the other
		if !p.peers[1-i].suspected {
			t.Errorf("node %d does not suspect the other when nothing arrives at node 0 any more", i)
		}
	}
}

// What a peer says that cannot be is refused.
func TestHeartbeatsAndSuspicionsThatCannotBeAreRefused(t *testing.T) {
	p, _ := pulseOf(0, 3)
	sent(p.links.To(1), 100)
	roomtest.Must(t, p.Heartbeat(1, wire.Heartbeat{Arrived: 100}.Frame()))
	other, _ := pulseOf(1, 3)
	for what, x := range map[string]struct {
		err  error
		says string
	}{
		"more bytes than were sent":   {p.Heartbeat(1, wire.Heartbeat{Arrived: 101}.Frame()), "101 bytes"},
		"half a heartbeat":            {p.Heartbeat(1, wire.Heartbeat{}.Frame()[:3]), "frame"},
		"a suspicion of itself":       {p.Suspicions(1, wire.Suspicions([]godwit.NodeID{1})), "suspects node 1"},
		"a suspicion of nobody":       {p.Suspicions(1, wire.Suspicions([]godwit.NodeID{3})), "node 3 of 3"},
		"a suspicion told to another": {other.Suspicions(2, wire.Suspicions([]godwit.NodeID{0})), "told node 1"},
	} {
		if x.err == nil || !strings.Contains(x.err.Error(), x.says) {
			t.Errorf("%s: %v, want %q in it", what, x.err, x.says)
		}
	}
	if v := p.due(); v != nil || len(p.pairs)+len(other.pairs) > 0 {
		t.Errorf("what was refused counts: %v, %v", p.pairs, other.pairs)
	}
}

func TestAVerdictNamesWhoIsInAllPairs(t *testing.T) {
	members := make([]coord.Member, 30)
	for i := range members {
		members[i].Addr = "x"
	}
	var star []rift
	for i := godwit.NodeID(1); i < 30; i++ {
		star = append(star, riftOf(i, 0))
	}
	for _, x := range []struct {
		pairs []rift
		says  string
	}{
		{[]rift{{1, 2}}, "nodes 1 (x) and 2 (x) do not reach each other"},
		{[]rift{{5, 7}, {2, 7}, {7, 9}}, "node 7 (x) reaches none of the nodes 2 (x), 5 (x), 9 (x)"},
		{[]rift{{5, 7}, {5, 6}}, "node 5 (x) reaches none of the nodes 6 (x), 7 (x)"},
		{[]rift{{3, 4}, {1, 2}}, "nodes 1 (x) and 2 (x), 3 (x) and 4 (x) do not reach each other"},
		{[]rift{{1, 2}, {1, 3}, {2, 3}}, "nodes 1 (x) and 2 (x), 1 (x) and 3 (x), 2 (x) and 3 (x) do not reach each other"},
		{star, "node 0 (x) reaches none of the nodes 1 (x), 2 (x), 3 (x), 4 (x), 5 (x), 6 (x), 7 (x), 8 (x), 9 (x), 10 (x), 19 more"},
	} {
		if got := verdictOf(x.pairs, members, 2*time.Second).Text; !strings.HasPrefix(got, x.says+": nothing moved for 2s") {
			t.Errorf("%v: %s, want %s", x.pairs, got, x.says)
		}
	}
}

// The arbiter hears others before it judges, and who hears no verdict gives one.
// Those of whom a node is nearly sure are named too.
func TestAVerdictWaitsForWhatOthersSuspect(t *testing.T) {
	for _, x := range []struct {
		self godwit.NodeID
		wait time.Duration
		says string
	}{
		{0, collectWait, "node 2 (x) reaches none of the nodes 0 (x), 1 (x), 3 (x)"},
		{1, appealWait, "node 1 (x) reaches none of the nodes 2 (x), 3 (x)"},
	} {
		p, w := pulseOf(x.self, 4)
		p.met()
		for i := range p.peers {
			if id := godwit.NodeID(i); id != x.self && id != 2 {
				p.peers[i].heard = time.Hour // no need to ask
			}
		}
		sent(p.links.To(2), 100)
		if x.self == 1 {
			p.pass(w, lease/3)
			sent(p.links.To(3), 100)
			p.pass(w, lease/3*2+answerTime+2*pulseEvery)
		} else {
			p.pass(w, lease+answerTime+2*pulseEvery)
		}
		if v := p.due(); v != nil {
			t.Errorf("node %d judges at once that %s", x.self, v.Text)
		}
		if x.self == arbiter {
			roomtest.Must(t, p.Suspicions(1, wire.Suspicions([]godwit.NodeID{2})))
			roomtest.Must(t, p.Suspicions(3, wire.Suspicions([]godwit.NodeID{2})))
		}
		p.pass(w, x.wait-pulseEvery)
		if v := p.due(); x.wait > pulseEvery && v != nil {
			t.Errorf("node %d judges too early that %s", x.self, v.Text)
		}
		p.pass(w, 2*pulseEvery)
		if v := p.due(); v == nil || !strings.HasPrefix(v.Text, x.says+":") {
			t.Errorf("node %d judges %v, want that %s", x.self, v, x.says)
		}
	}
}

// Run ends with the node or the run, and with a verdict.
func TestAPulseEnds(t *testing.T) {
	p, _ := pulseOf(0, 2)
	over := make(chan struct{})
	close(over)
	if v := p.Run(over); v != nil {
		t.Errorf("at the end of the run: %v", v)
	}
	p.host.Halt()
	if v := p.Run(nil); v != nil {
		t.Errorf("at the end of the node: %v", v)
	}

	p, _ = pulseOf(0, 3)
	p.host.World = host.Real()
	p.Start(0)
	roomtest.Must(t, p.Suspicions(1, wire.Suspicions([]godwit.NodeID{2})))
	if v := p.Run(nil); v == nil || !strings.Contains(v.Text, "nodes 1 (x) and 2 (x)") {
		t.Errorf("the verdict is %v", v)
	}
}

// A part of a frame that arrives is movement as well, and the peer is told of it; whole frames and heartbeats are no parts.
func TestAPartOfAFrameThatArrivesHereIsASignOfLife(t *testing.T) {
	p, w := pulseOf(0, 2)
	p.met()
	raw := uint64(7)
	l := &p.peers[1]
	l.raw, l.last.raw = func() uint64 { return raw }, raw
	sent(p.links.To(1), 1000) // and no answer comes
	for range 10 {
		p.pass(w, lease/2)
		raw++
		p.pass(w, pulseEvery)
		if l.since != p.clock {
			t.Fatalf("at %v, a byte came, and nothing moved since %v", p.clock, l.since)
		}
	}
	if l.suspected {
		t.Error("a peer is suspect of which bytes come")
	}
	p.Arrived(1, 100)
	p.Arrived(1, 20)
	raw += 120
	p.step()
	if l.moves || l.last.arrived != 120 {
		t.Errorf("a whole frame counts as a part: %v; %d bytes have arrived, want 120", l.moves, l.last.arrived)
	}
	since := p.clock
	roomtest.Must(t, p.Heartbeat(1, wire.Heartbeat{}.Frame()))
	raw += wire.HeartbeatLen
	p.pass(w, lease)
	if l.since > since {
		t.Errorf("a heartbeat without news counts as movement at %v", l.since)
	}
}

// Who asks in a heartbeat is answered at the next look.
func TestAPeerThatAsksIsAnswered(t *testing.T) {
	p, w := pulseOf(0, 2)
	p.met()
	p.pass(w, tellEvery)
	p.links.To(1).Take(nil) // what was told at first
	p.pass(w, pulseEvery)
	if b := p.links.To(1).Take(nil); len(b) > 0 {
		t.Fatalf("%d bytes are sent to a peer that does not ask", len(b))
	}
	roomtest.Must(t, p.Heartbeat(1, wire.Heartbeat{Asks: true}.Frame()))
	for i, want := range []bool{true, false} {
		p.pass(w, pulseEvery)
		if b := p.links.To(1).Take(nil); len(b) > 0 != want {
			t.Errorf("look %d after the question: %d bytes are sent", i+1, len(b))
		}
	}
}
