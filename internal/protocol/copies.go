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
		h := s.becomePlaceholder(k, a, out.Now())
		s.side(h).want++
		s.askOwner(out, h)
		return
	}
	h := s.st.Header(r)
	s.sideOf(h).want++
	if stateOf(h) == frozen {
		s.main(h).ask = a
	}
}

// askOwner asks for the key of a placeholder: now, or by AskDue if there is no room for
// the answer.
func (s *Shard) askOwner(out Out, h *store.Header) {
	if !s.ask(out, h) {
		s.placeholder(h).due = true
		s.due = append(s.due, h.Key)
	}
}

// ask asks for the key of a placeholder, and reports false if there is no room for the
// answer.
func (s *Shard) ask(out Out, h *store.Header) bool {
	k, p := h.Key, s.placeholder(h)
	to := s.next(k, 0)
	if !out.Ask(to, s.cfg.Model.RowLen(k)) {
		return false
	}
	p.askedOf, p.due = to, false
	if p.ask == placement.Copy {
		s.seq++
		p.first = s.seq
		s.send(out, to, wire.Record{Kind: wire.Interest, Key: k, Origin: s.cfg.Self, Seq: s.seq, Hops: 1})
		return true
	}
	s.send(out, to, wire.Record{Kind: wire.Localize, Key: k, Origin: s.cfg.Self, Hops: 1})
	return true
}

// answered notes that the answer to ask has come: its row no longer counts as asked for.
func (s *Shard) answered(out Out, h *store.Header) {
	p := s.placeholder(h)
	if p.askedOf != godwit.NoNode {
		out.Got(p.askedOf, s.cfg.Model.RowLen(h.Key))
	}
	p.askedOf, p.due = godwit.NoNode, false
}

// AskDue asks for keys for which there was no room before. There is some when an
// answer has come.
func (s *Shard) AskDue(out Out) {
	listed := s.due
	s.due = nil
	s.behind = s.behind[:0]
	for i, k := range listed {
		if len(s.behind) >= s.cfg.Nodes-1 && s.cfg.Nodes > 0 {
			s.due = append(s.due, listed[i:]...)
			return
		}
		ref, ok := s.st.Find(k)
		if !ok {
			continue
		}
		h := s.st.Header(ref)
		switch {
		case stateOf(h) != placeholder || !s.placeholder(h).due:
		case s.side(h).want == 0:
			s.again(out, h, placement.Nothing) // nobody wants it any more
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
	switch st := stateOf(h); {
	case st.isReplica():
		s.drain(out, h, r)
	case st == owner:
		s.decide(out, h, r)
	}
}

// arrived notes that the row of a placeholder has come, and takes the lead time.
func (s *Shard) arrived(out Out, h *store.Header) {
	s.answered(out, h)
	if since := s.placeholder(h).since; since != 0 {
		s.Stats.LeadNanos += uint64(max(0, out.Now()-since))
		s.Stats.LeadActions++
	}
}

// --- at the owner ---

func (s *Shard) situation(h *store.Header, asked placement.Ask, asker godwit.NodeID) placement.Situation {
	sit := placement.Situation{Self: s.cfg.Self, Hot: s.cfg.hot(h.Key), Asked: asked, Asker: asker}
	if !hasSide(h) {
		return sit
	}
	sit.SelfWants = s.side(h).want > 0
	m := s.main(h)
	s.others = s.others[:0]
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
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
	m := s.mainOf(h)
	x := s.holder(m, r.Origin)
	if x == nil {
		x = s.addHolder(m, r.Origin)
	}
	*x = holder{node: r.Origin, seq: r.Seq, next: x.next}
	switch a := s.action(h, placement.Copy, r.Origin); {
	case a.Verb == placement.Relocate && s.canMove(out, h, a.To, r.Origin):
		s.move(out, h, ref, a.To)
	case a.Verb == placement.Replicate:
		s.freshen(out, h, ref, x)
	default:
		s.dropHolder(m, r.Origin)
		s.tidy(h)
		s.send(out, r.Origin, wire.Record{Kind: wire.Refuse, Key: r.Key})
	}
}

// delta takes a replica's updates into the main copy, once.
func (s *Shard) delta(h *store.Header, ref store.Ref, r *wire.Record) {
	x := s.holder(s.mainOf(h), r.Origin)
	if x == nil {
		s.Stats.Stale++ // of a node that ended its interest since: it ends only when everything it sent was taken
		s.tidy(h)
		return
	}
	s.take(h, ref, x, r)
	x.marks |= unacked
	s.markChanged(h)
}

// take adds an update of a holder to the main copy, once (R1).
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
		by.full = 0 // the holder applied its pushes to older state: the next refresh brings all
	case current:
		by.version, by.full = h.Version, h.Version // the holder has this update already: nothing to send back
	}
}

// end takes a node's last updates and forgets the node.
func (s *Shard) end(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	m := s.mainOf(h)
	if x := s.holder(m, r.Origin); x != nil && (r.Seq > x.seq || s.cfg.Broken.EndAny) {
		s.take(h, ref, x, r)
		s.dropHolder(m, r.Origin)
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
	if hasSide(h) && s.main(h).holders != 0 {
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
		n := s.cfg.Model.Fresh(h.Key)
		if n < len(row) && to.version != 0 && h.Version <= to.full+to.full/stateAge {
			row = row[:n]
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
	if first := s.interestOf(h); (r.Seq < first || first == 0) && !s.cfg.Broken.TakeFormer {
		s.Stats.Stale++ // meant for a former replica of this node
		return nil
	}
	s.dir.SetHint(h.Key, from)
	switch st := stateOf(h); {
	case st == placeholder:
		return s.firstRefresh(out, h, ref, from, r)
	case st.isReplica():
		if r.Version < h.Version && !s.cfg.Broken.TakeStale {
			s.Stats.Stale++
			return nil
		}
		// An update in flight that the owner had not added stays on top.
		s.rebase(h, ref, r.Vals, s.replica(h).sent > r.Seq && !s.cfg.Broken.ForgetFlight)
		h.Epoch, h.Version = r.Epoch, r.Version
		s.acked(out, h, ref, r.Seq)
	}
	return nil
}

// interestOf returns the sequence number of the Interest to which this node's placeholder
// or replica of a key goes back; 0: there is none.
func (s *Shard) interestOf(h *store.Header) uint64 {
	switch st := stateOf(h); {
	case st == placeholder:
		return s.placeholder(h).first
	case st.isReplica():
		return s.replica(h).first
	}
	return 0
}

// firstRefresh makes a placeholder a replica.
func (s *Shard) firstRefresh(out Out, h *store.Header, ref store.Ref, from godwit.NodeID, r *wire.Record) error {
	row := s.st.Floats(ref)
	if len(r.Vals) != len(row) {
		return fmt.Errorf("protocol: node %d sends %d of %d floats of key %d, of which there is nothing here yet", from, len(r.Vals), len(row), r.Key)
	}
	copy(row, r.Vals)
	sub := s.st.Spare(s.st.ClassOf(ref))
	copy(s.st.Floats(sub), r.Vals)
	s.arrived(out, h)
	s.becomeReplica(h, sub, r.Epoch, r.Version)
	s.Stats.Copies++
	s.serveQueue(out, h.Key, false)
	if s.side(h).want == 0 {
		s.drain(out, h, ref)
	}
	return nil
}

// ack takes the owner's word that the copy is equal to the row.
func (s *Shard) ack(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if !stateOf(h).isReplica() || r.Seq < s.replica(h).first {
		s.Stats.Stale++
		return
	}
	h.Version = max(h.Version, r.Version)
	s.acked(out, h, ref, r.Seq)
}

// acked notes that the main copy contains the replica's updates up to seq. An update in
// flight ends with that, unless it is the last: that one waits for Dropped.
func (s *Shard) acked(out Out, h *store.Header, ref store.Ref, seq uint64) {
	d := s.replica(h)
	d.acked = max(d.acked, seq)
	if stateOf(h) != inFlight || d.sent > seq {
		return
	}
	s.dropSpare(&d.flight)
	d.sent = 0
	if d.unsent == none {
		s.becomeFresh(h)
	} else {
		s.becomeDirty(h)
	}
	s.serveQueue(out, h.Key, false)
	switch {
	case stateOf(h) == inFlight: // a Set that waited is the next update
	case s.side(h).want == 0:
		s.drain(out, h, ref)
	case d.unsent >= due:
		s.dirty = append(s.dirty, h.Key)
	}
}

// drain begins to give up a replica that nobody wants: its last updates go to the owner,
// and it can be read until the owner has them. So a worker that wrote here and
// reads again finds its own write, here or at the owner. While an update is in flight,
// its acknowledgement will begin it.
func (s *Shard) drain(out Out, h *store.Header, ref store.Ref) {
	if st := stateOf(h); st != fresh && st != dirty {
		return
	}
	s.extract(h, ref)
	s.becomeDraining(h)
	s.unsettle(h)
	d := s.replica(h)
	s.send(out, s.next(h.Key, 0), wire.Record{Kind: wire.End, Key: h.Key, Origin: s.cfg.Self, Seq: d.sent, Hops: 1, Vals: s.floats(d.flight)})
	if s.cfg.Broken.DropEarly {
		s.gone(out, h)
	}
}

// extract takes the updates of a replica that were not sent yet as the difference in
// flight, if they make one. The replica is about to become in flight or draining.
func (s *Shard) extract(h *store.Header, ref store.Ref) {
	d := s.side(h).replica()
	d.unsent = none
	row := s.st.Floats(ref)
	d.flight = s.addSpare(ref)
	changed := vec.Delta(s.floats(d.flight), row, s.st.Floats(d.sub))
	if changed {
		s.clip(h, ref)
		s.pack(h.Key, row, s.floats(d.flight))
	}
	if !s.withRest(d) && !changed {
		s.dropSpare(&d.flight)
	}
}

// pack turns the difference that pushes made to a row into what travels (R8).
func (s *Shard) pack(k godwit.Key, row, diff []float32) {
	i, _ := s.cfg.Model.Locate(k)
	if m := s.cfg.mergers[i]; m != nil {
		dim := s.cfg.Model.Table(i).Dim
		m.Pack(row[:dim], row[dim:], diff[:dim])
	}
}

// merge adds a packed difference to a row, as the update rule has it (R8).
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

// rebase puts a replica onto the owner's newer row (R2): onto that go the update in
// flight, if the row does not contain it, and then what was not sent yet.
// Where the row comes without all of its state, the copy's own stays.
func (s *Shard) rebase(h *store.Header, ref store.Ref, newer []float32, flight bool) {
	d, k := s.replica(h), h.Key
	row, sub := s.st.Floats(ref), s.st.Floats(d.sub)
	if d.unsent != none {
		s.diff = append(s.diff[:0], row...)
		vec.Sub(s.diff, sub)
		s.pack(k, row, s.diff)
	}
	n := copy(sub, newer)
	if flight && d.flight.present() {
		diff := s.floats(d.flight)
		vec.Sub(sub[n:], diff[n:]) // the copy's own state contains it, and it is about to be merged
		s.merge(k, sub, diff)
	}
	if d.rest.present() {
		rest := s.floats(d.rest)
		vec.Sub(sub[n:], rest[n:]) // likewise
		s.merge(k, sub, rest)
	}
	copy(row, sub)
	if d.unsent != none && !s.cfg.Broken.ForgetUnsent {
		s.merge(k, row, s.diff)
	}
}

// dropped ends a drained replica.
func (s *Shard) dropped(out Out, h *store.Header, from godwit.NodeID, r *wire.Record) {
	if stateOf(h) != draining || s.replica(h).sent != r.Seq {
		s.Stats.Stale++
		return
	}
	s.dir.SetHint(h.Key, from)
	s.gone(out, h)
}

// gone removes a replica, and asks for a new one if the node wants one again meanwhile.
func (s *Shard) gone(out Out, h *store.Header) {
	s.Stats.Drops++
	s.again(out, h, placement.Copy)
}

// again removes the row of a key that has left. If workers want the key, and ask is not
// Nothing, the key is asked for anew, and requests that wait here wait on for it. Else
// they follow the key.
func (s *Shard) again(out Out, h *store.Header, ask placement.Ask) {
	k, d := h.Key, s.side(h)
	want, queue := d.want, d.takeQueue()
	s.becomeAbsent(h)
	if want > 0 && ask != placement.Nothing {
		h := s.becomePlaceholder(k, ask, out.Now())
		d := s.side(h)
		d.want, d.queue = want, queue
		s.askOwner(out, h)
		return
	}
	s.resume(out, k, queue, false)
}

// refused takes the owner's word that it neither moves the key nor gives a
// copy. Requests to move it are done.
func (s *Shard) refused(out Out, h *store.Header, from godwit.NodeID) {
	if stateOf(h) != placeholder {
		s.Stats.Stale++
		return
	}
	s.Stats.Refused++
	s.dir.SetHint(h.Key, from)
	s.answered(out, h)
	d := s.side(h)
	r := s.borrowRecord()
	s.each(d.takeQueue(), func(i uint32) bool {
		if w := s.waiters.at(i); w.kind == wire.Localize && w.origin == s.cfg.Self {
			s.recall(h.Key, w, r)
			s.waiters.give(i)
			s.reply(out, r, wire.Done, nil)
		} else {
			s.enqueue(d, i)
		}
		return true
	})
	s.returnRecord(r)
	hot, next := s.cfg.hot(h.Key), placement.Nothing
	if s.placeholder(h).ask == placement.Move && (s.cfg.Policy.OnIntent(hot) == placement.Copy || s.cfg.Policy.Everywhere(hot)) {
		next = placement.Copy // the key does not move, but a copy can still be had
	}
	s.again(out, h, next)
}
