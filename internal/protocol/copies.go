package protocol

import (
	"fmt"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Want notes that an intent of a worker of this node for the key became due.
// Every Want is followed by one Unwant.
func (s *Shard) Want(out Out, k godwit.Key) {
	if a := s.cfg.Policy.OnIntent(s.cfg.hot(k)); a != placement.Nothing {
		s.want(out, k, a)
	}
}

// Hold asks for a replica that stays for the rest of the run.
func (s *Shard) Hold(out Out, k godwit.Key) { s.want(out, k, placement.Copy) }

func (s *Shard) want(out Out, k godwit.Key, a placement.Ask) {
	r, ok := s.find(k)
	if !ok {
		h := s.expect(k, a, out.Now())
		s.side(h).want++
		s.askOwner(out, h)
		return
	}
	h := s.st.Header(r)
	d := s.sideOf(h)
	d.want++
	if stateOf(h) == frozen {
		d.asked = a // once it is gone: see again
	}
}

// expect makes the placeholder of a key that is about to be asked for.
func (s *Shard) expect(k godwit.Key, a placement.Ask, now int64) *store.Header {
	r := s.st.Insert(k, s.class(k))
	h := s.st.Header(r)
	setState(h, placeholder)
	d := s.sideOf(h)
	d.asked, d.acked, d.moved = a, uint64(now), godwit.NoNode
	return h
}

// askOwner asks for a key of which there is a placeholder: now, or by AskDue if
// there is no room for the answer.
func (s *Shard) askOwner(out Out, h *store.Header) {
	if !s.ask(out, h) {
		s.side(h).noted = true
		s.due = append(s.due, h.Key)
	}
}

func (s *Shard) ask(out Out, h *store.Header) bool {
	k, d := h.Key, s.side(h)
	to := s.next(k, 0)
	if !out.Ask(to, s.cfg.Model.RowLen(k)) {
		return false
	}
	d.moved, d.noted = to, false
	if d.asked == placement.Copy {
		s.seq++
		d.first = s.seq
		s.send(out, to, wire.Record{Kind: wire.Interest, Key: k, Origin: s.cfg.Self, Seq: s.seq, Hops: 1})
		return true
	}
	s.send(out, to, wire.Record{Kind: wire.Localize, Key: k, Origin: s.cfg.Self, Hops: 1})
	return true
}

// answered ends what ask began.
func (s *Shard) answered(out Out, h *store.Header, d *side) {
	if d.moved != godwit.NoNode {
		out.Got(d.moved, s.cfg.Model.RowLen(h.Key))
	}
	d.moved, d.noted = godwit.NoNode, false
}

// AskDue asks for keys for which there was no room before. There is some when an
// answer has come.
func (s *Shard) AskDue(out Out) {
	due := s.due
	s.due = nil
	s.behind = s.behind[:0]
	for i, k := range due {
		if len(s.behind) >= s.cfg.Nodes-1 && s.cfg.Nodes > 0 {
			s.due = append(s.due, due[i:]...)
			return
		}
		ref, ok := s.st.Find(k)
		if !ok {
			continue
		}
		h := s.st.Header(ref)
		switch {
		case stateOf(h) != placeholder || !s.side(h).noted:
		case s.side(h).want == 0:
			s.again(out, h) // nobody wants it any more
		case !s.ask(out, h):
			s.due = append(s.due, k)
			if to := s.next(k, 0); !slices.Contains(s.behind, to) {
				s.behind = append(s.behind, to)
			}
		}
	}
}

// Unwant notes that an intent of a worker of this node ended.
func (s *Shard) Unwant(out Out, k godwit.Key) {
	r, ok := s.st.Find(k)
	if !ok || s.cfg.Policy.OnIntent(s.cfg.hot(k)) == placement.Nothing {
		return // moved away meanwhile, or never asked for
	}
	h := s.st.Header(r)
	if !hasSide(h) {
		return
	}
	d := s.side(h)
	if d.want == 0 {
		return
	}
	if d.want--; d.want > 0 {
		return
	}
	switch stateOf(h) {
	case replica:
		s.drain(out, h, r)
	case owner:
		s.decide(out, h, r)
	}
}

// arrived ends the wait for a key of which there was a placeholder: it takes the
// lead time.
func (s *Shard) arrived(out Out, h *store.Header, d *side) {
	s.answered(out, h, d)
	if d.acked != 0 {
		s.Stats.LeadNanos += uint64(max(0, out.Now()-int64(d.acked)))
		s.Stats.LeadActions++
		d.acked = 0
	}
}

// --- at the owner ---

func (s *Shard) situation(h *store.Header, asked placement.Ask, asker godwit.NodeID) placement.Situation {
	sit := placement.Situation{Self: s.cfg.Self, Hot: s.cfg.hot(h.Key), Asked: asked, Asker: asker}
	if !hasSide(h) {
		return sit
	}
	d := s.side(h)
	sit.SelfWants = d.want > 0
	s.others = s.others[:0]
	for x := s.firstHolder(d); x != nil; x = s.nextHolder(d, x) {
		s.others = append(s.others, x.node)
	}
	sit.Others = s.others
	return sit
}

// lastEpoch is of a key that can move no more, as its epochs could not grow. It has
// moved 4·10⁹ times.
const lastEpoch = math.MaxUint32

// action is what the policy decides, and what is possible of it.
func (s *Shard) action(h *store.Header, asked placement.Ask, asker godwit.NodeID) placement.Action {
	a := s.cfg.Policy.Decide(s.situation(h, asked, asker))
	if a.Verb == placement.Relocate && (h.Epoch == lastEpoch || !s.cfg.mayMove(h.Key, a.To)) {
		return placement.Action{Verb: placement.Keep}
	}
	return a
}

// interest registers a node that wants a copy.
func (s *Shard) interest(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	d := s.sideOf(h)
	x := s.holder(d, r.Origin)
	if x == nil {
		x = s.addHolder(d, r.Origin)
	}
	*x = holder{node: r.Origin, seq: r.Seq, next: x.next}
	switch a := s.action(h, placement.Copy, r.Origin); {
	case a.Verb == placement.Relocate && s.canMove(out, h, a.To, r.Origin):
		s.move(out, h, ref, a.To)
	case a.Verb == placement.Replicate:
		s.freshen(out, h, ref, x)
	default:
		s.dropHolder(d, r.Origin)
		s.tidy(h)
		s.send(out, r.Origin, wire.Record{Kind: wire.Refuse, Key: r.Key})
	}
}

// delta takes a replica's updates into the main copy, once.
func (s *Shard) delta(h *store.Header, ref store.Ref, r *wire.Record) {
	d := s.sideOf(h)
	x := s.holder(d, r.Origin)
	if x == nil {
		s.Stats.Stale++ // of a node that ended its interest since: it ends only when everything it sent was taken
		s.tidy(h)
		return
	}
	s.take(h, ref, x, r)
	x.marks |= unacked
	s.markChanged(h, d)
}

func (s *Shard) take(h *store.Header, ref store.Ref, by *holder, r *wire.Record) {
	if r.Seq <= by.seq && !s.cfg.Broken.TakeTwice {
		s.Stats.Stale++
		return
	}
	by.seq = r.Seq
	by.used()
	if len(r.Vals) == 0 {
		return
	}
	s.merge(h.Key, s.st.Floats(ref), r.Vals)
	current := by.version == h.Version && by.version != 0
	s.touch(h)
	switch {
	case current && by.is(lags):
		by.full = 0 // it applied its pushes to an older state than this: have it agree again
	case current:
		by.version, by.full = h.Version, h.Version // the holder has this update already: nothing to send back
	}
}

// end takes a node's last updates and forgets the node.
func (s *Shard) end(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	d := s.sideOf(h)
	if x := s.holder(d, r.Origin); x != nil && (r.Seq > x.seq || s.cfg.Broken.EndAny) {
		s.take(h, ref, x, r)
		s.dropHolder(d, r.Origin)
	} else {
		// Of a node to which the key moved meanwhile. It may have lost the key
		// again and hold a new copy, which this does not end.
		s.Stats.Stale++
	}
	s.send(out, r.Origin, wire.Record{Kind: wire.Dropped, Key: r.Key, Seq: r.Seq})
	s.decide(out, h, ref)
}

// decide asks the policy again after an interest ended.
func (s *Shard) decide(out Out, h *store.Header, ref store.Ref) {
	if stateOf(h) != owner {
		return
	}
	if hasSide(h) && s.side(h).holders != 0 {
		a := s.action(h, placement.Nothing, godwit.NoNode)
		if a.Verb == placement.Relocate && a.To != s.cfg.Self && s.canMove(out, h, a.To, godwit.NoNode) {
			s.move(out, h, ref, a.To)
			return
		}
	}
	s.tidy(h)
}

// stateAge bounds how old the state of a copy gets that may lag (see
// [godwit.Merger]): a holder gets it anew when the row's version has grown by
// one part in stateAge since. What a state sums up then lacks about a third,
// and in AdaGrad a step at the copy, until it is merged, is a fifth too long.
const stateAge = 2

// maxIdle bounds how rarely a holder is refreshed that does not use its copy, to
// once in 2^maxIdle rounds. Copies are asked for before their use, and most uses
// of a copy change it: while none did, each refresh comes after twice as many
// rounds as the one before. So what a copy costs before it is used grows with
// the logarithm of that time only, and it is never staler than half of its age.
const maxIdle = 3

// freshen sends a holder the row, if its copy is not equal to it, and the
// acknowledgement that is due to it.
func (s *Shard) freshen(out Out, h *store.Header, ref store.Ref, to *holder) {
	switch {
	case to.version != h.Version || to.version == 0:
		if h.Version == 0 {
			h.Version = 1 // version 0 is "never had a copy"
		}
		s.Stats.Refreshes++
		row := s.st.Floats(ref)
		fresh := s.cfg.Model.Fresh(h.Key)
		if fresh < len(row) && to.version != 0 && h.Version <= to.full+to.full/stateAge {
			row = row[:fresh]
			to.marks |= lags
		} else {
			to.full = h.Version
			to.marks &^= lags
		}
		to.version = h.Version
		to.refreshed()
		s.send(out, to.node, wire.Record{Kind: wire.Refresh, Key: h.Key, Epoch: h.Epoch, Version: h.Version, Seq: to.seq, Vals: row})
	case to.is(unacked):
		s.Stats.Acks++
		s.send(out, to.node, wire.Record{Kind: wire.Ack, Key: h.Key, Version: h.Version, Seq: to.seq})
	}
	to.marks &^= unacked
}

// --- at the node that holds or wants the copy ---

// refresh takes the owner's row.
func (s *Shard) refresh(out Out, h *store.Header, ref store.Ref, from godwit.NodeID, r *wire.Record) error {
	d := s.side(h)
	if (r.Seq < d.first || d.first == 0) && !s.cfg.Broken.TakeFormer {
		s.Stats.Stale++ // meant for a former replica of this node
		return nil
	}
	s.dir.SetHint(h.Key, from)
	row := s.st.Floats(ref)
	switch stateOf(h) {
	case placeholder:
		if len(r.Vals) != len(row) {
			return fmt.Errorf("protocol: node %d sends %d of %d floats of key %d, of which there is nothing here yet", from, len(r.Vals), len(row), r.Key)
		}
		copy(row, r.Vals)
		class := s.st.ClassOf(ref)
		sub := s.st.Spare(class)
		copy(s.st.Floats(sub), r.Vals)
		d.sub = sub
		h.Epoch, h.Version = r.Epoch, r.Version
		s.arrived(out, h, d)
		setState(h, replica)
		s.Stats.Copies++
		s.serveQueue(out, h.Key, false)
		if d := s.side(h); d.want == 0 && stateOf(h) == replica {
			s.drain(out, h, ref)
		}
	case replica:
		if r.Version < h.Version && !s.cfg.Broken.TakeStale {
			s.Stats.Stale++
			return nil
		}
		// An update in flight that the owner had not taken stays on top.
		s.rebase(h.Key, row, d, r.Vals, d.sent > r.Seq && !s.cfg.Broken.ForgetFlight)
		h.Epoch, h.Version = r.Epoch, r.Version
		s.acked(out, h, ref, r.Seq)
	}
	return nil
}

// ack takes the owner's word that the copy is equal to the row.
func (s *Shard) ack(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if stateOf(h) != replica || r.Seq < s.side(h).first {
		s.Stats.Stale++
		return
	}
	h.Version = max(h.Version, r.Version)
	s.acked(out, h, ref, r.Seq)
}

// acked ends the flight of the updates up to seq.
func (s *Shard) acked(out Out, h *store.Header, ref store.Ref, seq uint64) {
	d := s.side(h)
	d.acked = max(d.acked, seq)
	if d.sent == 0 || d.sent > seq || d.draining {
		return // a draining replica waits for Dropped
	}
	s.land(d)
	d.sent = 0
	if d.queue != 0 { // a Set that waited is the next update
		s.serveQueue(out, h.Key, false)
		if d = s.side(h); d.sent != 0 {
			return
		}
	}
	ending := d.ending
	d.ending = false
	switch {
	case ending && d.want == 0:
		s.drain(out, h, ref)
	case d.dirty && !d.weak:
		s.dirty = append(s.dirty, h.Key)
	}
}

// drain begins to give a replica up: its last updates go to the owner, and it
// stays readable until the owner has them. So a worker that wrote here and
// reads again finds its own write, here or at the owner.
func (s *Shard) drain(out Out, h *store.Header, ref store.Ref) {
	d := s.side(h)
	if d.draining {
		return
	}
	if d.sent != 0 {
		d.ending = true
		return
	}
	d.draining = true
	s.extract(h, ref, d)
	s.seq++
	d.sent = s.seq
	s.unsettle(h, d)
	s.send(out, s.next(h.Key, 0), wire.Record{Kind: wire.End, Key: h.Key, Origin: s.cfg.Self, Seq: d.sent, Hops: 1, Vals: s.flight(d)})
	if s.cfg.Broken.DropEarly {
		s.gone(out, h)
	}
}

// extract takes the updates of a replica that were not sent yet into flight.
func (s *Shard) extract(h *store.Header, ref store.Ref, d *side) {
	d.dirty, d.weak, d.flush = false, false, false
	row := s.st.Floats(ref)
	d.inFlight, d.flying = s.st.Spare(s.st.ClassOf(ref)), true
	changed := vec.Delta(s.flight(d), row, s.st.Floats(d.sub))
	if changed {
		s.clip(h, ref, d)
		s.pack(h.Key, row, s.flight(d))
	}
	if !s.withRest(d) && !changed {
		s.land(d)
	}
}

// pack makes the difference that pushes made to a row what is to travel.
func (s *Shard) pack(k godwit.Key, row, diff []float32) {
	i, _ := s.cfg.Model.Locate(k)
	if m := s.cfg.mergers[i]; m != nil {
		dim := s.cfg.Model.Table(i).Dim
		m.Pack(row[:dim], row[dim:], diff[:dim])
	}
}

// merge takes what was packed into a row.
func (s *Shard) merge(k godwit.Key, row, diff []float32) {
	i, _ := s.cfg.Model.Locate(k)
	if m := s.cfg.mergers[i]; m != nil && !s.cfg.Broken.AddPacked {
		dim := s.cfg.Model.Table(i).Dim
		vec.Add(row[dim:], diff[dim:])
		m.Merge(row[:dim], row[dim:], diff[:dim])
		return
	}
	vec.Add(row, diff)
}

// rebase puts what a replica's workers changed since it last agreed with the
// owner on top of the owner's newer row, and before that the update in flight
// if that row does not contain it. Where the row comes without all of its state,
// the copy's own stays.
func (s *Shard) rebase(k godwit.Key, row []float32, d *side, fresh []float32, flight bool) {
	sub := s.st.Floats(d.sub)
	if d.dirty {
		s.diff = append(s.diff[:0], row...)
		vec.Sub(s.diff, sub)
		s.pack(k, row, s.diff)
	}
	n := copy(sub, fresh)
	if flight && d.flying {
		vec.Sub(sub[n:], s.flight(d)[n:]) // it is in there, and is about to be merged
		s.merge(k, sub, s.flight(d))
	}
	if d.rest != 0 {
		rest := s.rest(d)
		vec.Sub(sub[n:], rest[n:]) // likewise
		s.merge(k, sub, rest)
	}
	copy(row, sub)
	if d.dirty && !s.cfg.Broken.ForgetUnsent {
		s.merge(k, row, s.diff)
	}
}

// dropped ends a drained replica.
func (s *Shard) dropped(out Out, h *store.Header, from godwit.NodeID, r *wire.Record) {
	if d := s.side(h); stateOf(h) != replica || !d.draining || d.sent != r.Seq {
		s.Stats.Stale++
		return
	}
	s.dir.SetHint(h.Key, from)
	s.gone(out, h)
}

// gone removes a replica and asks again if the node wants it again meanwhile.
func (s *Shard) gone(out Out, h *store.Header) {
	s.Stats.Drops++
	if s.side(h).want > 0 {
		s.side(h).asked = placement.Copy
	}
	s.again(out, h)
}

// again removes the row of a key that has left and goes on with what remains:
// a key that is wanted is asked for anew and requests that waited here wait on
// for it, else they follow it.
func (s *Shard) again(out Out, h *store.Header) {
	k, d := h.Key, s.side(h)
	want, asked, queue := d.want, d.asked, d.queue
	d.queue = 0
	s.remove(h)
	if want > 0 && asked != placement.Nothing {
		h := s.expect(k, asked, out.Now())
		d := s.side(h)
		d.want, d.queue = want, queue
		s.askOwner(out, h)
		return
	}
	s.resume(out, k, queue, false)
}

// refused takes the owner's word that it neither moves the key nor gives a
// copy.
func (s *Shard) refused(out Out, h *store.Header, from godwit.NodeID) {
	if stateOf(h) != placeholder {
		s.Stats.Stale++
		return
	}
	s.Stats.Refused++
	s.dir.SetHint(h.Key, from)
	d := s.side(h)
	s.answered(out, h, d)
	queue := d.queue
	d.queue = 0
	r := s.lend()
	s.each(queue, func(i uint32) bool {
		if w := s.waiters.at(i); w.kind == wire.Localize && w.origin == s.cfg.Self {
			s.recall(h.Key, w, r)
			s.waiters.give(i)
			s.reply(out, r, wire.Done, nil)
		} else {
			s.enqueue(d, i)
		}
		return true
	})
	s.lent = append(s.lent, r)
	hot := s.cfg.hot(h.Key)
	if d.asked == placement.Move && (s.cfg.Policy.OnIntent(hot) == placement.Copy || s.cfg.Policy.Everywhere(hot)) {
		d.asked = placement.Copy // the key does not move, but a copy can still be had
	} else {
		d.asked = placement.Nothing
	}
	s.again(out, h)
}
