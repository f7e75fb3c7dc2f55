package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// This file is how nodes notice that a connection is dead, though both of its ends
// live and the coordinator hears from both: a switch that lost a route, a firewall,
// a process that keeps its lease and says nothing.
//
// Each end of a connection tells the other one how many bytes have arrived, in
// heartbeats. A peer owes an answer while some of what was sent to it has not
// arrived, as far as it says, or a heartbeat that asks for one is unanswered. A
// peer that owes an answer for the lease, while nothing moved either way, is
// suspect. Over an idle connection, one end asks now and then.
//
// Who suspects somebody tells node 0, the judge, which collects what others have
// to say for a moment and ends the run by a verdict that names who does not reach
// whom. If that does not come (among others, because the suspect is node 0), who
// suspects tells the coordinator itself.
//
// Time is counted in slices, none longer than maxSlice: while this process did
// not run, it could not have heard anything, and that is not its peers' fault. A
// peer that did not run for less than the lease answers in time when it runs
// again.
const (
	pulseEvery = 100 * time.Millisecond // how often a node looks
	maxSlice   = 5 * pulseEvery         // the most that counts of the time between two looks
	tellEvery  = 5 * pulseEvery         // how often it tells what has arrived, while something does
	answerTime = 5 * pulseEvery / 2     // what a peer has beside the lease, to look and to answer
	judgeWait  = pulseEvery             // for how long the judge collects suspicions
	appealWait = 3 * pulseEvery         // for how long a node waits for the judge's verdict
)

// askAfter is after what silence of a connection the end of the smaller id asks
// whether the other lives: two heartbeats, so often that they take less than
// 10 bytes a second. The other end waits a little longer.
func askAfter(lease time.Duration, asks bool) time.Duration {
	d := max(lease/2, 2*wire.HeartbeatLen*time.Second/8)
	if !asks {
		d += d / 4
	}
	return d
}

// judge is the node that suspicions go to.
const judge = godwit.NodeID(0)

// A life is what is known of the life of one connection.
type life struct {
	// Written by who takes frames.
	arrived atomic.Uint64 // bytes of frames that came, heartbeats not counted
	beats   atomic.Uint64 // heartbeats that came
	acked   atomic.Uint64 // bytes that have arrived at the peer, as it says
	partly  atomic.Bool   // part of a frame has
	asked   atomic.Bool   // the peer wants a heartbeat

	// Of the pulse. Times are of its clock.
	raw       func() uint64 // bytes that came, those of a part of a frame as well; nil: not known
	last      counts        // at the last look
	met       bool          // something came at all
	heard     time.Duration // when the last thing came
	since     time.Duration // since when the peer owes an answer and nothing moved
	owes      bool
	asks      bool          // a heartbeat that asked is unanswered
	told      uint64        // the peer was told that so many bytes had arrived
	toldAt    time.Duration // when; 0: never
	moves     bool          // a part of a frame came since
	suspected bool
}

// counts are how far a connection has moved.
type counts struct{ arrived, beats, acked, raw uint64 }

// A pulse looks after the connections of a node. All but links and suspicions is
// its goroutine's.
type pulse struct {
	n     *Node
	links []life // by peer
	lease time.Duration
	clock time.Duration // that this process has run since it was started
	seen  int64         // the time of the last look
	begin time.Duration // for how long a peer may say nothing at first: it waits for others

	mu      preempt.Mutex
	pairs   []rift        // of nodes that do not reach each other
	verdict time.Duration // when one is given; 0: there are no pairs
}

// A rift is two nodes that do not reach each other, the smaller first.
type rift [2]godwit.NodeID

func riftOf(a, b godwit.NodeID) rift { return rift{min(a, b), max(a, b)} }

func newPulse(n *Node) *pulse {
	return &pulse{n: n, links: make([]life, n.links.Nodes()), lease: n.cfg.Session.Lease()}
}

// start is called when all connections are there, before the pulse runs. Other
// nodes may still wait for theirs, until their start has to be over.
func (p *pulse) start(ctx context.Context) {
	p.seen = p.n.Now()
	if p.n.cfg.Virtual == nil {
		p.begin = coord.DefaultJoin
		if at, ok := ctx.Deadline(); ok {
			p.begin = time.Until(at)
		}
	}
	for id, l := range p.n.links.All {
		if m, ok := l.Conn().(transport.Meter); ok {
			p.links[id].raw = m.Arrived
			p.links[id].last.raw = m.Arrived()
		}
	}
}

// run looks after the connections until the node or the run ends.
func (p *pulse) run() {
	for p.n.Idle(pulseEvery, p.n.Stop(), p.n.parting.all) < 0 {
		p.step()
		if v := p.due(); v != nil {
			p.n.pronounce(v)
			return
		}
	}
}

// step counts the time since the last step and looks at all connections.
func (p *pulse) step() {
	now := p.n.Now()
	p.clock += min(time.Duration(now-p.seen), maxSlice)
	p.seen = now
	fresh := false
	for id := range p.links {
		if godwit.NodeID(id) == p.n.self {
			continue
		}
		l := &p.links[id]
		p.measure(godwit.NodeID(id), l)
		if p.overdue(l, p.lease+answerTime) && !l.suspected {
			l.suspected, fresh = true, true
		}
		p.tell(godwit.NodeID(id), l)
	}
	if fresh {
		p.suspect()
	}
}

// measure takes note of what moved over a connection since the last look.
func (p *pulse) measure(id godwit.NodeID, l *life) {
	now := counts{l.arrived.Load(), l.beats.Load(), l.acked.Load(), 0}
	whole := now.arrived - l.last.arrived + (now.beats-l.last.beats)*wire.HeartbeatLen
	part := false
	if l.raw != nil {
		now.raw = l.raw()
		part = now.raw-l.last.raw > whole
	}
	moved := part || l.partly.Swap(false) || now.arrived != l.last.arrived || now.acked != l.last.acked
	if whole > 0 || part {
		l.met, l.heard, l.asks = true, p.clock, false
	}
	l.moves = l.moves || part
	o := p.n.links.To(id)
	l.owes = l.asks || now.acked < o.Payload()
	if moved || !l.owes {
		l.since = p.clock
	}
	l.last = now
}

// overdue reports whether a peer has owed an answer for longer than limit.
func (p *pulse) overdue(l *life, limit time.Duration) bool {
	if !l.met {
		limit += p.begin
	}
	return l.owes && p.clock-l.since > limit
}

// tell sends a heartbeat where one is due.
func (p *pulse) tell(id godwit.NodeID, l *life) {
	answer := l.asked.Swap(false)
	ask := !l.owes && p.clock-l.heard >= askAfter(p.lease, p.n.self < id)
	news := l.last.arrived != l.told || l.moves
	if !answer && !ask && l.toldAt > 0 && !(news && p.clock-l.toldAt >= tellEvery) {
		return
	}
	p.n.links.To(id).Beat(wire.Heartbeat{Arrived: l.last.arrived, Moves: l.moves, Asks: ask})
	l.asks = l.asks || ask
	l.told, l.toldAt, l.moves = l.last.arrived, p.clock, false
}

// beat takes a heartbeat of a peer.
func (p *pulse) beat(from godwit.NodeID, frame []byte) error {
	h, err := wire.ParseHeartbeat(frame)
	if err != nil {
		return err
	}
	if sent := p.n.links.To(from).Payload(); h.Arrived > sent {
		return fmt.Errorf("says that %d bytes have arrived, of %d that were sent", h.Arrived, sent)
	}
	l := &p.links[from]
	add(&l.beats, 1)
	l.acked.Store(h.Arrived)
	if h.Moves {
		l.partly.Store(true)
	}
	if h.Asks {
		l.asked.Store(true)
	}
	return nil
}

// suspect takes note of whom this node does not reach, and tells the judge. Those
// of whom it will soon be sure are named with those of whom it is.
func (p *pulse) suspect() {
	var of []godwit.NodeID
	for id := range p.links {
		if l := &p.links[id]; l.suspected || godwit.NodeID(id) != p.n.self && p.overdue(l, p.lease/2) {
			of = append(of, godwit.NodeID(id))
		}
	}
	p.charge(p.n.self, of)
	if p.n.self != judge && !slices.Contains(of, judge) {
		o := p.n.links.To(judge)
		o.Push(wire.Suspicions(of))
		o.Flush()
	}
}

// accused takes the suspicions of a peer.
func (p *pulse) accused(by godwit.NodeID, frame []byte) error {
	of, err := wire.ParseSuspicions(frame)
	if err != nil {
		return err
	}
	for _, id := range of {
		if p.n.self != judge || int(id) >= len(p.links) || id == by {
			return fmt.Errorf("told node %d that it suspects node %d of %d", p.n.self, id, len(p.links))
		}
	}
	p.charge(by, of)
	return nil
}

// charge notes that a node does not reach others.
func (p *pulse) charge(by godwit.NodeID, of []godwit.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range of {
		if x := riftOf(by, id); !slices.Contains(p.pairs, x) {
			p.pairs = append(p.pairs, x)
		}
	}
}

// due returns a verdict if it is time for one.
func (p *pulse) due() *coord.PartitionError {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.pairs) == 0:
		return nil
	case p.verdict == 0 && p.n.self == judge:
		p.verdict = p.clock + judgeWait
	case p.verdict == 0:
		p.verdict = p.clock + appealWait
	case p.clock >= p.verdict:
		return verdictOf(p.pairs, p.n.cfg.Session.Members(), p.lease)
	}
	return nil
}

// pronounce ends the run by a verdict.
func (n *Node) pronounce(v *coord.PartitionError) {
	if n.parting.isComplete() || n.Err() != nil {
		return
	}
	n.Fail(v)
	n.cfg.Session.Fail(v)
}

// verdictOf says which nodes do not reach each other. It names a node that is in
// all of several pairs first.
func verdictOf(pairs []rift, members []coord.Member, lease time.Duration) *coord.PartitionError {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, func(a, b rift) int { return slices.Compare(a[:], b[:]) })
	name := func(id godwit.NodeID) string { return fmt.Sprintf("%d (%s)", id, members[id].Addr) }
	text := ""
	if id, ok := common(pairs); ok && len(pairs) > 1 {
		var others []string
		for _, x := range pairs {
			others = append(others, name(x[0]+x[1]-id))
		}
		text = fmt.Sprintf("node %s reaches none of the nodes %s", name(id), listed(others))
	} else {
		var each []string
		for _, x := range pairs {
			each = append(each, name(x[0])+" and "+name(x[1]))
		}
		text = "nodes " + listed(each) + " do not reach each other"
	}
	return &coord.PartitionError{Text: fmt.Sprintf("%s: nothing moved for %v over the connections between them", text, lease)}
}

// common returns the node that is in all pairs.
func common(pairs []rift) (godwit.NodeID, bool) {
	for _, id := range pairs[0] {
		if !slices.ContainsFunc(pairs, func(x rift) bool { return x[0] != id && x[1] != id }) {
			return id, true
		}
	}
	return 0, false
}

// listed joins names, of which it leaves out the eleventh and all after it.
func listed(names []string) string {
	const few = 10
	if n := len(names); n > few {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("%d more", n-few))
	}
	return strings.Join(names, ", ")
}
