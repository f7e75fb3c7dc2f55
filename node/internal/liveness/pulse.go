package liveness

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/transport"
)

// Time is counted in slices, none longer than maxSlice: while this process did
// not run, it could not have heard anything, and that is not its peers' fault. A
// peer that did not run for less than the lease answers in time when it runs
// again.
const (
	pulseEvery  = 100 * time.Millisecond // how often a node looks
	maxSlice    = 5 * pulseEvery         // the most that counts of the time between two looks
	tellEvery   = 5 * pulseEvery         // how often it tells what has arrived, while something does
	answerTime  = 5 * pulseEvery / 2     // what a peer has beside the lease, to look and to answer
	collectWait = pulseEvery             // for how long the arbiter collects suspicions
	appealWait  = 3 * pulseEvery         // for how long a node waits for the arbiter's verdict
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

// A Pulse looks after the connections of a node. One goroutine runs it; whoever takes
// frames tells it what came.
type Pulse struct {
	host    *host.Host
	links   *link.Links
	members []coord.Member
	lease   time.Duration
	peers   []life // by node

	// Of the goroutine that runs it.
	clock time.Duration // that this process has run since it was started
	seen  int64         // the time of the last look
	begin time.Duration // for how long a peer may say nothing at first: it waits for others

	mu      preempt.Mutex
	pairs   []rift        // of nodes that do not reach each other
	verdict time.Duration // when one is given; 0: there are no pairs
}

// New returns the pulse of a node of a run with these members. Who owes an answer for
// the lease is suspect.
func New(h *host.Host, ls *link.Links, members []coord.Member, lease time.Duration) *Pulse {
	return &Pulse{host: h, links: ls, members: members, lease: lease, peers: make([]life, ls.Nodes())}
}

// Start is called when all connections are there, before Run. Other nodes may still
// wait for theirs: so long, a peer may say nothing at first, beside the lease.
func (p *Pulse) Start(begin time.Duration) {
	p.seen, p.begin = p.host.Now(), begin
	for id, l := range p.links.All {
		if m, ok := l.Conn().(transport.Meter); ok {
			p.peers[id].raw = m.Arrived
			p.peers[id].last.raw = m.Arrived()
		}
	}
}

// Run looks after the connections until over is closed or the node stops, and returns
// nil; or until nodes do not reach each other, and returns who.
func (p *Pulse) Run(over <-chan struct{}) *coord.PartitionError {
	for p.host.Idle(pulseEvery, p.host.Stop(), over) < 0 {
		p.step()
		if v := p.due(); v != nil {
			return v
		}
	}
	return nil
}

// step counts the time since the last step and looks at all connections.
func (p *Pulse) step() {
	now := p.host.Now()
	p.clock += min(time.Duration(now-p.seen), maxSlice)
	p.seen = now
	fresh := false
	for id := range p.peers {
		if godwit.NodeID(id) == p.links.Self {
			continue
		}
		l := &p.peers[id]
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
func (p *Pulse) measure(id godwit.NodeID, l *life) {
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
	o := p.links.To(id)
	l.owes = l.asks || now.acked < o.Payload()
	if moved || !l.owes {
		l.since = p.clock
	}
	l.last = now
}

// overdue reports whether a peer has owed an answer for longer than limit.
func (p *Pulse) overdue(l *life, limit time.Duration) bool {
	owed := p.clock - l.since
	if !l.met {
		owed -= p.begin // and not the limit more: with a begin without end that is no number
	}
	return l.owes && owed > limit
}

// tell sends a heartbeat where one is due.
func (p *Pulse) tell(id godwit.NodeID, l *life) {
	answer := l.asked.Swap(false)
	ask := !l.owes && p.clock-l.heard >= askAfter(p.lease, p.links.Self < id)
	news := l.last.arrived != l.told || l.moves
	if !answer && !ask && l.toldAt > 0 && !(news && p.clock-l.toldAt >= tellEvery) {
		return
	}
	p.links.To(id).Beat(wire.Heartbeat{Arrived: l.last.arrived, Moves: l.moves, Asks: ask})
	l.asks = l.asks || ask
	l.told, l.toldAt, l.moves = l.last.arrived, p.clock, false
}

// Arrived takes note that a frame of so many bytes came from a peer, other than a
// heartbeat. It is for who takes the frames of that peer.
func (p *Pulse) Arrived(from godwit.NodeID, bytes int) {
	c := &p.peers[from].arrived
	c.Store(c.Load() + uint64(bytes)) // has one writer
}

// Heartbeat takes a heartbeat of a peer. It is for who takes the frames of that peer.
func (p *Pulse) Heartbeat(from godwit.NodeID, frame []byte) error {
	h, err := wire.ParseHeartbeat(frame)
	if err != nil {
		return err
	}
	if sent := p.links.To(from).Payload(); h.Arrived > sent {
		return fmt.Errorf("says that %d bytes have arrived, of %d that were sent", h.Arrived, sent)
	}
	l := &p.peers[from]
	l.beats.Store(l.beats.Load() + 1) // has one writer
	l.acked.Store(h.Arrived)
	if h.Moves {
		l.partly.Store(true)
	}
	if h.Asks {
		l.asked.Store(true)
	}
	return nil
}
