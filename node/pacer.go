package node

import (
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/placement"
)

// The pacer is the node's sync loop: one goroutine that runs sync rounds over the
// shards that have something to send. It sleeps while there is nothing to do.
// Intents are the [planner]'s: where workers announce millions of keys a second,
// to begin and to end them takes longer than a round, and replicas would be old.
//
// Rounds take a bounded share of the processors that the node's workers keep
// busy: a part of share of them, and where the workers' clocks tick faster than
// that, rounds follow the ticks, up to a part of most. Workers that all go several
// steps on old copies of the same rows, and whose updates are then summed, may
// not converge. So replicas are as fresh as the work allows, without a rate to
// set. It is processor time that counts, not time on the wall: where workers
// keep all cores busy, a round waits for its turn, and rounds would become rare
// just where much changes. What the network cannot carry stays for a later round
// too (Limits.Copies), where further updates of the same keys join it.
type pacer struct {
	n    *Node
	out  link.Sender
	bell *host.Bell

	mu     preempt.Mutex
	drains []*drainage // WaitSync calls that have begun
	marks  []mark      // peers that want to hear when they have everything

	waiting atomic.Int32 // drains that are not done

	rounds atomic.Uint64
	rates  []intent.Rate // of the workers' clocks

	every  time.Duration // between rounds over the shards at least, if the policy sets a rate
	synced int64         // when the last one was
}

// retry is the pause after a round that a full queue held up.
const retry = 500 * time.Microsecond

type mark struct {
	from godwit.NodeID
	op   uint64
}

func newPacer(n *Node, bell *host.Bell) *pacer {
	return &pacer{n: n, out: n.links.Sender(), bell: bell,
		rates: make([]intent.Rate, n.cfg.Workers), every: interval(placement.SyncOf(n.proto.Policy).Rate)}
}

func (p *pacer) run() {
	h := p.n.Host
	held := false
	round := func() {
		held = p.round()
		h.Worked(p.out.Records)
		p.out.Records = 0
	}
	for h.Wait(p.bell.Rung(), h.Stop(), nil) == 0 {
		p.bell.Awake()
		p.rounds.Add(1) // before anybody sees what it did
		cost := time.Duration(h.Measure(round))
		d := p.n.budget.Round(cost, p.tick())
		if p.waiting.Load() > 0 || p.n.bound.pressed() {
			d = host.MinPause // somebody waits for nothing else
		}
		if held {
			d = max(d, retry)
			p.bell.Ring()
		}
		if h.Sleep(d, p.bell.Hurried(), h.Stop()) == 1 {
			return
		}
	}
}

// tick is the shortest time between two ticks of a worker's clock, in seconds; 0
// if none is known.
func (p *pacer) tick() (shortest float64) {
	now := p.n.Now()
	for i, w := range p.n.workers {
		r := &p.rates[i]
		r.Observe(now, w.Clock())
		shortest = host.Shorter(shortest, r.Tick())
	}
	return shortest
}

// round does everything that is due.
func (p *pacer) round() (held bool) {
	p.mu.Lock()
	marks := p.marks
	p.marks = nil
	p.mu.Unlock()

	b := p.n.bound
	if b != nil {
		b.open(p)
	}
	if p.n.links.Due() {
		p.n.rows.AskDue(&p.out)
	}
	early := p.early(p.n.Now(), marks)
	held = early || p.n.rows.Round(&p.out, len(marks) > 0, b != nil && b.presses())
	if held {
		p.mu.Lock()
		p.marks = append(p.marks, marks...)
		p.mu.Unlock()
	} else {
		for _, m := range marks {
			p.out.Send(m.from, &wire.Record{Kind: wire.SyncAck, Op: m.op})
		}
	}
	if b != nil {
		b.end(p, !early, held)
	}
	p.drained()
	if p.n.answers.Round(&p.out) {
		held = true
	}
	p.out.Flush()
	return held
}

// A drainage is one WaitSync: first this node's updates go out and are
// acknowledged, then every peer sends what is new and says so.
type drainage struct {
	id      uint64
	flush   shards.Flush // what is left of it; nil: not begun
	asked   bool
	missing int // peers that have not answered
	done    chan struct{}
}

// drain begins a WaitSync.
func (p *pacer) drain() *drainage {
	d := &drainage{done: make(chan struct{})}
	p.mu.Lock()
	d.id = p.n.ids.Add(1)
	p.drains = append(p.drains, d)
	p.mu.Unlock()
	p.waiting.Add(1)
	p.bell.Ring()
	p.bell.Hurry()
	return d
}

// drained moves the WaitSync calls on.
func (p *pacer) drained() {
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	drains := append([]*drainage(nil), p.drains...)
	p.mu.Unlock()
	for _, d := range drains {
		if d.asked {
			continue
		}
		if d.flush == nil {
			d.flush = p.n.rows.BeginFlush()
		}
		if d.flush = d.flush.Left(); len(d.flush) > 0 {
			continue
		}
		d.asked = true
		p.mu.Lock()
		d.missing = p.n.links.Nodes() - 1
		p.mu.Unlock()
		for i := range p.n.links.Nodes() {
			if godwit.NodeID(i) != p.n.self {
				p.out.Send(godwit.NodeID(i), &wire.Record{Kind: wire.SyncMark, Op: d.id})
			}
		}
	}
}

// marked takes a peer's SyncMark or SyncAck.
func (p *pacer) marked(from godwit.NodeID, r *wire.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Kind == wire.SyncMark {
		p.marks = append(p.marks, mark{from, r.Op})
		p.bell.Ring()
		p.bell.Hurry()
		return
	}
	p.n.bound.acknowledged(r.Op)
	for i, d := range p.drains {
		if d.id == r.Op && d.asked {
			if d.missing--; d.missing == 0 {
				p.drains = append(p.drains[:i], p.drains[i+1:]...)
				p.waiting.Add(-1)
				close(d.done)
			}
			return
		}
	}
}
