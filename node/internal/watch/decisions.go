package watch

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// This file traces what was decided about keys, and from what.

// Decisions returns what the shards tell of their decisions; nil if t is.
func (t *Tracer) Decisions() func(protocol.Decision) {
	if t == nil {
		return nil
	}
	return t.decided
}

func (t *Tracer) decided(d protocol.Decision) {
	if !t.to.Takes(d.Key, trace.Decided) {
		return
	}
	x := &trace.Decision{To: t.self}
	peer := t.self
	switch {
	case d.Placing != nil:
		x.Placed = t.placed(d.Placing)
		done := d.Placing.Done()
		if x.Done = choiceOf(done); x.Done == trace.MoveTo {
			x.To = done.To
		}
		peer = x.Placed.Asker
	case d.Wishing != nil:
		m := d.Wishing.Miss
		x.Done = [...]trace.Choice{intent.Stay: trace.Stay, intent.Copy: trace.AskCopy, intent.Bid: trace.BidFor}[d.Wishing.Done()]
		x.Learned = &trace.Learned{Copies: m.Copies, Asked: m.Asked, Known: m.Known, Full: d.Wishing.Full, Patience: m.Patience, Cost: m.Cost, Seen: m.Seen, Pulls: m.Pulls, Pushes: m.Pushes}
	case d.Ending != nil:
		w := d.Ending
		x.Done, x.Ended = trace.EndCopy, &trace.EndedWish{Credit: w.Credit, Saves: w.Saves, Saved: w.Saved, Records: w.Records, Needed: w.Needed}
	}
	t.write(d.Key, d.Epoch, peer, x)
}

func (t *Tracer) write(k godwit.Key, e godwit.Epoch, peer godwit.NodeID, d *trace.Decision) {
	t.to.Add(trace.Event{Time: t.now(), Key: k, Clock: t.clock(), Epoch: e, Node: t.self, Peer: peer, Kind: trace.Decided, Decision: d})
}

// placed returns what an owner decided from, without what is not known by the trace's nodes: no asker is the owner.
func (t *Tracer) placed(p *protocol.Placing) *trace.Placed {
	s := &p.Situation
	x := &trace.Placed{Chosen: choiceOf(p.Chosen), ChosenTo: p.Chosen.To, Asked: askOf(s.Asked), Asker: s.Asker, Wanted: s.SelfWants, Hot: s.Hot, Fixed: p.Fixed, Full: p.Full,
		Bid: p.Bid, Others: append([]godwit.NodeID(nil), s.Others...)}
	if p.Bid {
		x.Since, x.Present, x.Pushes = since(p)
	}
	if s.Asked == placement.Nothing {
		x.Asker = t.self
	}
	if p.Chosen.Verb != placement.Relocate {
		x.ChosenTo = t.self
	}
	return x
}

// since returns the numbers of a bid as far as they can be recorded: the versions less what is beyond, so that
// their difference is as it was.
func since(p *protocol.Placing) (known, present, pushes uint32) {
	a, b := uint64(p.Since), uint64(p.Present)
	if b > math.MaxUint32 && a > 1 {
		less := min(a-1, b-math.MaxUint32)
		a, b = a-less, b-less
	}
	return uint32(min(a, math.MaxUint32)), uint32(min(b, math.MaxUint32)), uint32(min(p.Pushes, math.MaxUint32))
}

func choiceOf(a placement.Action) trace.Choice {
	switch a.Verb {
	case placement.Relocate:
		return trace.MoveTo
	case placement.Replicate:
		return trace.GiveCopy
	}
	return trace.Stay
}

func askOf(a placement.Ask) trace.Choice {
	switch a {
	case placement.Copy:
		return trace.AskCopy
	case placement.Move:
		return trace.AskKey
	}
	return trace.Stay
}

// Asks says by which policy the node asks for keys, and which are hot; nil: none. It is called before workers announce anything.
func (t *Tracer) Asks(p placement.Policy, hot func(godwit.Key) bool) {
	if t != nil {
		t.policy, t.hot = p, hot
	}
}

// Means tells how traced keys are got that a worker announces, whenever that changes. It belongs to one goroutine.
type Means struct {
	of   *Tracer
	last map[godwit.Key]way
}

// A way is how a key is got, and whether the worker's steps were measured by then.
type way struct {
	done     trace.Choice
	measured bool
}

// Means returns one for a goroutine.
func (t *Tracer) Means() *Means {
	return &Means{t, map[godwit.Key]way{}}
}

// Decided takes note of how keys are got, and from what that was decided.
func (m *Means) Decided(keys []godwit.Key, u intent.Use) {
	if m.of.policy == nil {
		return
	}
	for _, k := range keys {
		if m.of.to.Takes(k, trace.Decided) {
			m.decided(k, &u)
		}
	}
}

func (m *Means) decided(k godwit.Key, u *intent.Use) {
	t := m.of
	hot := t.hot != nil && t.hot(k)
	done := trace.FetchAhead
	if u.Means() != intent.Fetch {
		done = askOf(t.policy.OnIntent(hot))
	}
	now := way{done, u.Took > 0}
	if last, ok := m.last[k]; ok && last == now {
		return
	}
	m.last[k] = now
	t.write(k, 0, t.self, &trace.Decision{Done: done, To: t.self, Planned: &trace.Planned{Step: u.Step, Hot: hot, Fetched: u.Fetched,
		Took: uint32(u.Took), Long: uint32(u.Long), Window: clocks(u.Window)}})
}

func clocks(c godwit.Clock) uint32 { return uint32(min(max(c, 0), math.MaxUint32)) }
