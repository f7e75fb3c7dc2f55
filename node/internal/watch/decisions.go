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
	x, peer := trace.Decision{To: t.self}, t.self // nothing of it is kept, so that none of it is garbage
	var placed trace.Placed
	var learned trace.Learned
	var ended trace.EndedWish
	switch {
	case d.Placing != nil:
		t.placed(&placed, d.Placing)
		x.Placed = &placed
		done := d.Placing.Done()
		if x.Done = choiceOf(done); x.Done == trace.MoveTo {
			x.To = done.To
		}
		peer = x.Placed.Asker
	case d.Wishing != nil:
		m := d.Wishing.Miss
		x.Done = [...]trace.Choice{intent.Stay: trace.Stay, intent.Copy: trace.AskCopy, intent.Bid: trace.BidFor}[d.Wishing.Done()]
		learned = trace.Learned{Copies: m.Copies, Asked: m.Asked, Known: m.Known, Full: d.Wishing.Full, Patience: m.Patience, Cost: m.Cost, Seen: m.Seen, Pulls: m.Pulls, Pushes: m.Pushes}
		x.Learned = &learned
	case d.Ending != nil:
		w := d.Ending
		ended = trace.EndedWish{Credit: w.Credit, Saves: w.Saves, Saved: w.Saved, Records: w.Records, Needed: w.Needed}
		x.Done, x.Ended = trace.EndCopy, &ended
	}
	t.write(d.Key, d.Epoch, peer, &x)
}

func (t *Tracer) write(k godwit.Key, e godwit.Epoch, peer godwit.NodeID, d *trace.Decision) {
	t.to.Add(trace.Event{Time: t.now(), Key: k, Clock: t.clock(), Epoch: e, Node: t.self, Peer: peer, Kind: trace.Decided, Decision: d})
}

// placed fills in what an owner decided from, without what is not known by the trace's nodes: no asker is the owner.
func (t *Tracer) placed(x *trace.Placed, p *protocol.Placing) {
	s := &p.Situation
	*x = trace.Placed{Chosen: choiceOf(p.Chosen), ChosenTo: p.Chosen.To, Asked: askOf(s.Asked), Asker: s.Asker, Unmoved: s.Unmoved, Wanted: s.SelfWants, Hot: s.Hot, Fixed: p.Fixed, Full: p.Full,
		Bid: p.Bid, Others: s.Others}
	if p.Bid {
		x.Since, x.Present, x.Pushes = since(p)
	}
	if s.Asked == placement.Nothing {
		x.Asker = t.self
	}
	if p.Chosen.Verb != placement.Relocate {
		x.ChosenTo = t.self
	}
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
	few  []way              // of a model of few keys: by key
	last map[godwit.Key]way // of another one
}

// A way is how a key is got, and whether the worker's steps were measured by then; 0: not known.
type way uint8

// fewKeys is up to how many keys of a model the tracer has arrays by key. They are in the processor's cache where tables would not be.
const fewKeys = 1 << 17

// Means returns one for a goroutine.
func (t *Tracer) Means() *Means {
	return &Means{of: t, few: make([]way, t.few), last: map[godwit.Key]way{}}
}

// Decided takes note of how keys are got, and from what that was decided.
func (m *Means) Decided(keys []godwit.Key, u intent.Use) {
	t := m.of
	if t.policy == nil {
		return
	}
	cold, hot := t.wayOf(&u, false), t.wayOf(&u, true)
	for _, k := range keys {
		now := cold
		if t.hot != nil && t.hot(k) {
			now = hot
		}
		if uint64(k) < uint64(len(m.few)) {
			if m.few[k] == now || !t.to.Takes(k, trace.Decided) {
				continue
			}
			m.few[k] = now
		} else {
			if !t.to.Takes(k, trace.Decided) || m.last[k] == now {
				continue
			}
			m.last[k] = now
		}
		t.means(k, &u)
	}
}

// gets returns how a key is got.
func (t *Tracer) gets(u *intent.Use, hot bool) trace.Choice {
	if u.Means() != intent.Fetch {
		return askOf(t.policy.OnIntent(hot))
	}
	return trace.FetchAhead
}

func (t *Tracer) wayOf(u *intent.Use, hot bool) way {
	w := way(1+t.gets(u, hot)) << 1
	if u.Took > 0 {
		w++
	}
	return w
}

// means tells how a key is got.
func (t *Tracer) means(k godwit.Key, u *intent.Use) {
	hot := t.hot != nil && t.hot(k)
	planned := trace.Planned{Step: u.Step, Hot: hot, Fetched: u.Fetched, Took: uint32(u.Took), Long: uint32(u.Long), Window: clocks(u.Window)}
	t.write(k, 0, t.self, &trace.Decision{Done: t.gets(u, hot), To: t.self, Planned: &planned})
}

func clocks(c godwit.Clock) uint32 { return uint32(min(max(c, 0), math.MaxUint32)) }
