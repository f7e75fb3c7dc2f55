package link

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A Sender is one goroutine's way to send: it is the protocol's Out.
type Sender struct {
	Records int           // sent to others since its owner set it to 0
	Flooded godwit.NodeID // a peer for which too many answers are queued; NoNode: there is none

	drains bool // its owner calls Drain now and then
	filled bool // … and has frames to send by it

	ls      *Links
	touched []bool // peers to flush
	full    []bool // peers that there was no room for
	any     bool
	clock   int64 // the time since when it sends without a flush; 0: not asked for yet

	// A goroutine that sends many records in a row keeps the queue that the last one
	// went into. Others may hold a shard and want the queue. So it must not wait for a
	// shard, but lets go of the queue if the shard is taken. Nor may it wait for anything
	// else before Release.
	keeps bool
	kept  *Link // locked
	left  int   // records until others get their turn

	gathers bool
	batches []batch // by peer; nil: it never gathered
}

// maxKept is how many records in a row a Sender keeps others out for.
const maxKept = 64

// Sender returns a way to send for one goroutine.
func (ls *Links) Sender() Sender {
	return Sender{ls: ls, touched: make([]bool, len(ls.peers)), full: make([]bool, len(ls.peers)), Flooded: godwit.NoNode}
}

// Drains is Sender for one goroutine that calls Drain, and ends with Drain and not with Flush or Post.
func (ls *Links) Drains() Sender {
	s := ls.Sender()
	s.drains = true
	return s
}

// Keep begins a row of records. Release ends it.
func (s *Sender) Keep() { s.keeps = true }

// Release ends what Keep began.
func (s *Sender) Release() {
	s.keeps = false
	s.LetGo()
}

// Kept reports whether the sender keeps a queue from others: it must not wait for
// anything before it has let go of it.
func (s *Sender) Kept() bool { return s.kept != nil }

// LetGo lets others have the queue that the sender keeps.
func (s *Sender) LetGo() {
	if o := s.kept; o != nil {
		s.kept = nil
		o.mu.Unlock()
	}
}

// Send puts a record into the queue to a node: it is sent by Flush or Post, and when
// a frame is full. One to this node is taken at once.
func (s *Sender) Send(to godwit.NodeID, r *wire.Record) {
	if to == s.ls.Self {
		s.ls.Answered(to, *r)
		return
	}
	if s.gathers {
		s.gather(to, r)
		return
	}
	s.put(to, r)
}

// put puts a record into the queue to a peer.
func (s *Sender) put(to godwit.NodeID, r *wire.Record) {
	o := s.keep(to)
	s.sent(o, to, 1, o.add(r))
}

// SendGroup is Send of the records of a group, which is empty afterwards.
func (s *Sender) SendGroup(to godwit.NodeID, g *wire.Group) {
	switch {
	case g.Len() == 0:
		return
	case to == s.ls.Self:
		for i := range g.Len() {
			s.ls.Answered(to, *g.Record(i))
		}
	default:
		o := s.keep(to)
		s.sent(o, to, g.Len(), o.addGroup(g))
	}
	g.Empty()
}

// keep returns the link to a node, whose queue is locked.
func (s *Sender) keep(to godwit.NodeID) *Link {
	o := s.ls.peers[to]
	if s.kept != o {
		s.LetGo()
		o.mu.Lock()
		s.kept, s.left = o, maxKept
	}
	return o
}

// sent ends the sending of some records to a node: they are in the queue, and filled a frame or not.
func (s *Sender) sent(o *Link, to godwit.NodeID, records int, full bool) {
	if o.owed > s.ls.Limits.Owed {
		s.Flooded = to
	}
	later := full && s.drains && o.flushed == nil
	idle := full && !later && o.claim()
	if s.left -= records; full || s.left <= 0 || !s.keeps {
		s.LetGo()
	}
	switch {
	case later:
		s.filled = true
	case full:
		o.filled(idle)
	}
	s.Touch(to)
	s.Records += records
}

// Touch notes that there is something to send to a peer.
func (s *Sender) Touch(to godwit.NodeID) { s.touched[to], s.any = true, true }

// Room reports whether refreshes and deltas to a peer may go now (Limits.Copies). That
// there was no room is noted: see Full.
func (s *Sender) Room(to godwit.NodeID) bool {
	ok := s.room(to)
	s.full[to] = s.full[to] || !ok
	return ok
}

func (s *Sender) room(to godwit.NodeID) bool {
	if s.gathers {
		b := s.seen(to)
		if b.room <= 0 && len(b.recs) > 0 {
			s.hand(to, b) // they take less than they counted
		}
		return b.room > 0
	}
	return is(s, to, (*queue).roomForCopies, s.ls.Limits.Copies)
}

// Rooms reports whether refreshes and deltas to some peer may go now. That there is no room for any is noted for all of them: who asks
// leaves what it has, whomever it is for.
func (s *Sender) Rooms() bool {
	for i, o := range s.ls.peers {
		if o != nil && s.room(godwit.NodeID(i)) {
			return true
		}
	}
	for i, o := range s.ls.peers {
		s.full[i] = s.full[i] || o != nil
	}
	return false
}

// Takes reports whether answers that can wait may go to a peer now (Limits.Answers).
func (s *Sender) Takes(to godwit.NodeID) bool { return is(s, to, (*queue).room, s.ls.Limits.Answers) }

// Strained reports whether bytes are what bounds the way to a peer: what is queued takes the
// network longer than a step should wait for.
func (s *Sender) Strained(to godwit.NodeID) bool { return bounds(s, to, (*queue).strained, 0) }

// Crowded reports whether copies are, or were a moment ago, more than the way to a peer takes.
func (s *Sender) Crowded(to godwit.NodeID) bool {
	if s.gathers && s.ls.Strains == nil && s.ls.peers[to] != nil {
		return s.seen(to).crowded
	}
	return bounds(s, to, (*queue).crowded, s.Now())
}

// Rests reports whether the workers of a peer read nothing before they ask for all that is new.
func (s *Sender) Rests(to godwit.NodeID) bool { o := s.ls.peers[to]; return o != nil && o.rests.Load() }

// StrainedBy reports whether so many bytes more, to all peers alike, would strain the way to one.
func (s *Sender) StrainedBy(bytes int) bool {
	each := bytes / max(len(s.ls.peers)-1, 1)
	for i := range s.ls.peers {
		if bounds(s, godwit.NodeID(i), (*queue).strained, each) {
			return true
		}
	}
	return false
}

// bounds is [is] of whether bytes bound the way to a peer, which Links.Strains may say instead; false for the way to this node.
func bounds[T any](s *Sender, to godwit.NodeID, what func(*queue, T) bool, by T) bool {
	switch {
	case s.ls.peers[to] == nil:
		return false
	case s.ls.Strains != nil:
		return s.ls.Strains()
	}
	return is(s, to, what, by)
}

// is reports whether something is so of the queue to a peer. A queue that is kept is
// let go of before another is looked at: two senders that each kept what the other
// looks at would wait for ever.
func is[T any](s *Sender, to godwit.NodeID, what func(*queue, T) bool, by T) bool {
	o := s.ls.peers[to]
	if s.kept != o {
		s.LetGo()
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	return what(&o.queue, by)
}

// Ask counts a row that is asked for because of an intent, and reports whether there
// is room for it.
func (s *Sender) Ask(to godwit.NodeID, floats int) bool { return s.ls.asking.ask(to, CostOf(floats)) }

// Got takes note that such a row has come.
func (s *Sender) Got(to godwit.NodeID, floats int) {
	if s.ls.asking.got(to, CostOf(floats)) {
		s.ls.asking.due.Store(true)
		s.ls.rounds.Ring()
		s.ls.rounds.Hurry()
	}
}

// Now is the time of the first question since the last flush: close enough for
// lead times, and keys come by the thousand.
func (s *Sender) Now() int64 {
	if s.clock == 0 {
		s.clock = s.ls.host.Now()
	}
	return s.clock
}

// Sole returns the only peer that a flush would send to; NoNode if there are more,
// or none.
func (s *Sender) Sole() godwit.NodeID {
	peer := godwit.NoNode
	for i, t := range s.touched {
		if t && peer != godwit.NoNode {
			return godwit.NoNode
		}
		if t {
			peer = godwit.NodeID(i)
		}
	}
	return peer
}

// Flush has everything sent that this sender put in, by the caller where that is
// quick.
func (s *Sender) Flush() { s.each((*Link).Flush) }

// Post leaves the sending to the writers: the caller has other things to do, among
// them, perhaps, to put in more.
func (s *Sender) Post() { s.each((*Link).Post) }

// Drain has everything sent that this sender put in, by the caller as far as the network takes it
// without a wait; if complete, only frames that are, and it is quick where there are none.
func (s *Sender) Drain(complete bool) {
	switch {
	case !complete:
		s.filled = false
		s.each(func(l *Link) { l.Drain(false) })
	case s.filled:
		s.filled = false
		s.LetGo()
		for i, t := range s.touched {
			if t {
				s.ls.peers[i].Drain(true)
			}
		}
	}
}

// Any reports whether there is something that a flush would send.
func (s *Sender) Any() bool { return s.any }

// Full reports whether there was no room for something to a peer, since the last
// ForgetFull.
func (s *Sender) Full(peer godwit.NodeID) bool { return s.full[peer] }

// ForgetFull begins to note anew for whom there is no room.
func (s *Sender) ForgetFull() {
	clear(s.full)
	for _, o := range s.ls.peers {
		if o != nil {
			o.lookAgain()
		}
	}
}

// Join takes over what another sender of the node is to flush, sent and noted: its owner does what the owner of this one has to do, and
// has done it. The other one is as if it were new.
func (s *Sender) Join(o *Sender) {
	o.Release()
	for i := range s.touched {
		s.touched[i] = s.touched[i] || o.touched[i]
		s.full[i] = s.full[i] || o.full[i]
	}
	clear(o.touched)
	clear(o.full)
	s.any = s.any || o.any
	s.Records += o.Records
	o.any, o.Records, o.clock = false, 0, 0
}

func (s *Sender) each(send func(*Link)) {
	s.Release()
	s.clock = 0
	if s.any {
		s.any = false
		for i := range s.touched {
			if s.touched[i] {
				s.touched[i] = false
				send(s.ls.peers[i])
			}
		}
	}
}

// Self returns the node that sends.
func (s *Sender) Self() godwit.NodeID { return s.ls.Self }
