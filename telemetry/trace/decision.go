package trace

import (
	"encoding/binary"

	"github.com/godwit-ps/godwit"
)

// A Decision is what a node decided about a key, and all that it was decided from: of Placed, Learned, Ended and
// Planned, the one that is not nil. Each is decided by a pure function of what is recorded.
// Numbers are recorded up to 2³²-1.
type Decision struct {
	Done    Choice        // what was done
	To      godwit.NodeID // of MoveTo, the new owner; else the node
	Placed  *Placed       // by the key's owner: who gets the key, or a copy
	Learned *Learned      // by a node whose workers access the key elsewhere without announcing it
	Ended   *EndedWish    // by such a node that has a copy
	Planned *Planned      // by a node whose worker announced the key: how to get it
}

// A Choice is what can be done about a key.
type Choice uint8

// The choices. The numbers are those of the file format.
const (
	Stay       Choice = iota // the key stays where it is, and who asked gets nothing
	MoveTo                   // the main copy moves
	GiveCopy                 // who asked gets a replica
	AskCopy                  // the node asks for a replica
	AskKey                   // the node asks for the key
	BidFor                   // the node tells the owner how many of the key's changes it makes
	FetchAhead               // a worker fetches the value of the key ahead of each use
	EndCopy                  // the node gives its replica up
)

// Placed is what the owner of a key decides from who gets the key or a copy.
type Placed struct {
	Chosen   Choice          // by the policy: Stay, MoveTo or GiveCopy
	ChosenTo godwit.NodeID   // of MoveTo
	Asked    Choice          // for what the asker asked: AskCopy or AskKey; Stay: an intent ended, or an update of the only copy came
	Asker    godwit.NodeID   // who asked; the owner, if nobody did
	Wanted   bool            // a worker of the owner wants the key
	Hot      bool            // the key is hot
	Fixed    bool            // the key could not move then
	Full     bool            // a node that would have got a row took none then
	Unmoved  bool            // the key has never moved
	Bid      bool            // the asker has not announced the key in time, but made some of its changes:
	Since    uint32          // … since this version,
	Present  uint32          // … up to this one,
	Pushes   uint32          // … so many
	Others   []godwit.NodeID // that hold or want a copy, in order of asking
}

// Learned is what a node decides from whether to ask for a key of which it makes accesses elsewhere that were not announced, or not in time.
type Learned struct {
	Copies   bool   // it may have a copy
	Asked    bool   // there is no answer yet to a bid
	Known    bool   // it knows a version of the key, since which it counts
	Full     bool   // there is no room for one more copy
	Patience uint8  // the key must earn what it asks for by 1<<Patience times as many accesses
	Cost     uint32 // of the accesses so far, in that of an access at another node in a message of many
	Seen     uint32 // accesses that were noticed
	Pulls    uint32 // accesses; of bids, since the last one
	Pushes   uint32 // likewise
}

// EndedWish is what a node decides from to give a copy up that no worker announced.
type EndedWish struct {
	Credit  int32  // of the copy, in the same cost, before
	Saves   int32  // an access that the copy serves
	Saved   uint32 // accesses that it served since it was judged last
	Records uint32 // that sync rounds exchanged for it since
	Needed  bool   // its place was needed for another
}

// Planned is what a node decides from how to get a key that a worker announced.
type Planned struct {
	Step    bool   // it is announced for one step
	Hot     bool   // the key is hot
	Fetched bool   // the worker fetched values ahead before
	Took    uint32 // ns of the worker's shortest recent step; 0: not measured yet
	Long    uint32 // ns of a step from which on values are fetched ahead; 0: never
	Window  uint32 // clocks ahead of which intents are acted on
}

const (
	rulePlaced = 1 + iota
	ruleLearned
	ruleEnded
	rulePlanned
)

// inputs are the numbers of a record of kind Input.
const inputs = 3

func flags(bs ...bool) (n uint32) {
	for i, b := range bs {
		if b {
			n |= 1 << i
		}
	}
	return n
}

func unflag(n uint32, bs ...*bool) {
	for i, b := range bs {
		*b = n>>i&1 != 0
	}
}

// appendTo appends the decision's numbers, as they are written.
func (d *Decision) appendTo(ns []uint32) []uint32 {
	head := uint32(d.Done)<<8 | uint32(byte(d.To))<<16
	switch {
	case d.Placed != nil:
		p := d.Placed
		ns = append(ns, rulePlaced|head, uint32(p.Chosen)|uint32(byte(p.ChosenTo))<<8|uint32(p.Asked)<<16|uint32(byte(p.Asker))<<24,
			flags(p.Wanted, p.Hot, p.Fixed, p.Full, p.Bid, p.Unmoved)|uint32(len(p.Others))<<8)
		if p.Bid {
			ns = append(ns, p.Since, p.Present, p.Pushes)
		}
		for i := 0; i < len(p.Others); i += 4 {
			n := uint32(0)
			for j, o := range p.Others[i:min(i+4, len(p.Others))] {
				n |= uint32(o) << (8 * j)
			}
			ns = append(ns, n)
		}
		return ns
	case d.Learned != nil:
		l := d.Learned
		return append(ns, ruleLearned|head, flags(l.Copies, l.Asked, l.Known, l.Full)|uint32(l.Patience)<<8, l.Cost, l.Seen, l.Pulls, l.Pushes)
	case d.Ended != nil:
		e := d.Ended
		return append(ns, ruleEnded|head, flags(e.Needed), uint32(e.Credit), uint32(e.Saves), e.Saved, e.Records)
	case d.Planned != nil:
		p := d.Planned
		return append(ns, rulePlanned|head, flags(p.Step, false, p.Hot, p.Fetched), p.Took, p.Long, 0, p.Window)
	}
	return append(ns, head)
}

// decisionOf reads what appendTo appended, and zeros behind it. It returns nil if they say no decision that is known.
func decisionOf(ns []uint32) *Decision {
	d := &Decision{Done: Choice(ns[0] >> 8), To: godwit.NodeID(ns[0] >> 16 & 255)}
	if len(ns) < inputs || byte(ns[0]) != rulePlaced && len(ns) < 2*inputs {
		return nil
	}
	switch byte(ns[0]) {
	case rulePlaced:
		p := &Placed{Chosen: Choice(ns[1]), ChosenTo: godwit.NodeID(ns[1] >> 8 & 255), Asked: Choice(ns[1] >> 16), Asker: godwit.NodeID(ns[1] >> 24)}
		unflag(ns[2], &p.Wanted, &p.Hot, &p.Fixed, &p.Full, &p.Bid, &p.Unmoved)
		others := int(ns[2] >> 8 & 255)
		rest := ns[3:]
		if p.Bid {
			if len(rest) < 3 {
				return nil
			}
			p.Since, p.Present, p.Pushes, rest = rest[0], rest[1], rest[2], rest[3:]
		}
		if others > 4*len(rest) {
			return nil
		}
		for i := range others {
			p.Others = append(p.Others, godwit.NodeID(rest[i/4]>>(8*(i%4))&255))
		}
		d.Placed = p
	case ruleLearned:
		l := &Learned{Patience: uint8(ns[1] >> 8), Cost: ns[2], Seen: ns[3], Pulls: ns[4], Pushes: ns[5]}
		unflag(ns[1], &l.Copies, &l.Asked, &l.Known, &l.Full)
		d.Learned = l
	case ruleEnded:
		d.Ended = &EndedWish{Credit: int32(ns[2]), Saves: int32(ns[3]), Saved: ns[4], Records: ns[5]}
		unflag(ns[1], &d.Ended.Needed)
	case rulePlanned:
		d.Planned = &Planned{Took: ns[2], Long: ns[3], Window: ns[5]}
		var unused bool
		unflag(ns[1], &d.Planned.Step, &unused, &d.Planned.Hot, &d.Planned.Fetched)
	default:
		return nil
	}
	return d
}

// appendInputs appends the records of a decision's numbers, which follow that of its event.
func appendInputs(b []byte, head []byte, ns []uint32) []byte {
	for ; len(ns) > 0; ns = ns[min(inputs, len(ns)):] {
		b = append(b, head...)
		left := (len(ns) - 1) / inputs
		b = append(b, byte(Input), byte(left))
		for i := range inputs {
			n := uint32(0)
			if i < len(ns) {
				n = ns[i]
			}
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return b
}

// A gatherer puts decisions together of the records that they have. Its zero value is ready.
type gatherer struct {
	event Event
	ns    []uint32
	open  bool // event is a decision of which records are to follow
}

// take takes the next record that is wanted or of kind Input, and reports whether it makes an event.
func (g *gatherer) take(b []byte, h *Header) (e Event, ok bool) {
	if Kind(b[6]) != Input {
		e = decode(b, h)
		if g.open = e.Kind == Decided; g.open {
			g.event, g.ns = e, g.ns[:0]
			return e, false
		}
		return e, true
	}
	if !g.open || keyOf(b) != g.event.Key {
		return e, false
	}
	for i := range inputs {
		g.ns = append(g.ns, binary.LittleEndian.Uint32(b[8+4*i:]))
	}
	if b[7] > 0 {
		return e, false
	}
	e = g.event
	e.Decision, g.open = decisionOf(g.ns), false
	return e, e.Decision != nil
}

// String names the choice.
func (c Choice) String() string {
	if c > EndCopy {
		return "unknown"
	}
	return [...]string{Stay: "stay", MoveTo: "move", GiveCopy: "give a copy", AskCopy: "ask for a copy", AskKey: "ask for the key", BidFor: "bid", FetchAhead: "fetch ahead", EndCopy: "end the copy"}[c]
}
