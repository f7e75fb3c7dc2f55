package intent

import (
	"math"
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// A Learner predicts from what a node did what it will do: of keys that nobody announced,
// it notices those that the node's workers access at other nodes again and again, and says
// when to ask for them. Where copies are allowed, it asks for a copy (a wish), and goes on
// judging whether the copy is worth its cost. Elsewhere it asks for the key itself (a bid).
//
// Everything is counted in costs, and nothing in time. The unit is what a key costs that is
// accessed at another node in a message of many. So long as the accesses of a key have cost less
// than a copy would cost to set up and to give up, the key is accessed where it is; then it is
// copied. The copy has a credit: accesses that it saves add to it, and what sync rounds exchange
// for it is taken off. A copy whose credit is used up ends, and the key must earn the next one by
// twice as many accesses.
// So a key never costs more than a small multiple of what the better of both would have
// (as renting skis until the rent has reached the price does).
//
// The memory is bounded: of traces by Most, of wishes by the caller. The zero Learner
// has learned nothing and is ready.
type Learner struct {
	// Most is how many traces there may be, a power of two, 16 or more; 0: 512.
	Most int

	traces []trace // in sets of ways
	used   int     // of these

	wishes map[godwit.Key]wish
	order  []godwit.Key // of the wishes, in the order of Oldest
	hand   int          // in order

	last Miss
}

// A trace is what is known of a key that is accessed at other nodes. It takes 32 bytes.
type trace struct {
	key    godwit.Key     // plus 1; 0: none
	since  godwit.Version // of the row, when the counts began; 0: not known
	cost   uint32         // of the accesses
	pulls  uint32         // accesses, and
	pushes uint32         // … since the last bid
	seen   uint16         // of these, how many were noticed themselves
	// The key must earn what it asks for by 1<<patience times as many accesses.
	patience uint8
	asked    bool // there is no answer to a bid yet
}

// A wish is a copy that the node asked for by itself.
type wish struct {
	credit   int32
	saves    int32 // by an access, as the accesses before it cost
	patience uint8
}

// Costs, in those of a key that is accessed at another node in a message of many. A record of a
// round costs more than one of a request: rows are found by their keys and compared with what was
// sent, and side records are followed.
const (
	roundCost   = 2
	copyCost    = 12 + firstCredit // to set up and to give up, and what the copy may cost until it ends
	firstCredit = 4 * roundCost
	mostCredit  = 128
	again       = 3             // a copy is for keys that were noticed so often
	leastCost   = 2 * roundCost // of a push, so that a copy can pay: an update of a copy and its acknowledgement
	mostCost    = 1 << 24
)

// Of bids: a key moves only to a node that makes nearly all of its changes.
const (
	firstBid  = 2  // accesses that were noticed until the key's version is asked for
	leastBid  = 8  // pushes that were noticed until the key is asked for
	bidFactor = 4  // how many times as many pushes the node must have made as all others
	lostBid   = 64 // accesses after which a bid without an answer did not reach the owner
)

const (
	ways         = 4   // traces of a set
	firstTraces  = 16  // 512 bytes
	maxTraces    = 512 // where Most does not say it, 16 KiB
	mostPatience = 10
)

// An Advice is what to do about a key that was accessed at another node.
type Advice uint8

// What a Learner advises.
const (
	Stay Advice = iota // go on as before
	Copy               // ask for a copy
	Bid                // ask for the key, by TakeBid
)

// Missed takes note of accesses to a key that had to be made at another node: so many, of which
// each cost so much. copies says whether the node may have a copy of the key.
func (l *Learner) Missed(k godwit.Key, push, copies bool, times, cost uint32) Advice {
	t := l.trace(k)
	if t == nil {
		return Stay
	}
	if copies && push && cost < leastCost {
		return Stay // nobody waits for it, and a copy would hardly be cheaper
	}
	t.count(push, times, cost)
	l.last = Miss{Copies: copies, Asked: t.asked, Known: t.since != 0, Patience: t.patience, Cost: t.cost, Seen: uint32(t.seen), Pulls: t.pulls, Pushes: t.pushes}
	return l.last.Advice()
}

// Last returns what the last advice of Missed but Stay was given from.
func (l *Learner) Last() Miss { return l.last }

// A Miss is what is known of a key when it is accessed at another node.
type Miss struct {
	Copies        bool   // the node may have a copy
	Asked         bool   // there is no answer to a bid yet
	Known         bool   // a version of the row, since which it is counted
	Patience      uint8  // the key must earn what it asks for by 1<<Patience times as many accesses
	Cost          uint32 // of the accesses so far, in that of a key in a message of many
	Seen          uint32 // accesses that were noticed themselves
	Pulls, Pushes uint32 // accesses; for bids, since the last one
}

// Advice returns what to do.
func (m *Miss) Advice() Advice {
	switch {
	case m.Copies:
		if m.Cost >= copyCost<<m.Patience && m.Seen >= again {
			return Copy
		}
	case m.Asked && m.Seen < lostBid || 2*m.Pulls < m.Pushes || m.Pushes == 0:
		// There is an answer to wait for; or the workers push and do not read, and
		// nobody waits for a push; or they change nothing.
	case !m.Known && m.Seen >= firstBid, min(m.Seen, m.Pushes) >= leastBid<<m.Patience:
		return Bid
	}
	return Stay
}

// count adds accesses that were noticed as one.
func (t *trace) count(push bool, times, cost uint32) {
	if push {
		t.pushes += times
	} else {
		t.pulls += times
	}
	t.cost = min(t.cost+times*cost, mostCost)
	if t.seen++; t.seen == math.MaxUint16 {
		t.cost, t.pulls, t.pushes, t.seen, t.since = t.cost/2, t.pulls/2, t.pushes/2, t.seen/2, 0
	}
}

// TakeBid begins a bid for a key: how often this node has pushed to it since it had a version;
// 0: no version is known yet, and the bid asks for it only. The counts begin anew.
func (l *Learner) TakeBid(k godwit.Key) (since godwit.Version, pushes uint64) {
	t := l.trace(k)
	since, pushes = t.since, uint64(t.pushes)
	t.pulls, t.pushes, t.seen, t.asked = 0, 0, 0, true
	return since, pushes
}

// BidAnswered takes the owner's answer to a bid: the version at which the key stays, or 0 if the
// bid won. It reports whether there was a bid. A key for which the node has bid in vain must earn
// the next bid by twice as many accesses, and so must one that it won and that is not here when it
// bids again.
func (l *Learner) BidAnswered(k godwit.Key, version godwit.Version) bool {
	t := l.find(k)
	if t == nil || !t.asked {
		return false
	}
	if t.since != 0 {
		t.patience = min(t.patience+1, mostPatience)
	}
	t.since, t.asked = version, false
	return true
}

// Wins reports whether a node that made so many pushes since a version of a row gets it at the
// present version, of which each change is one.
func Wins(since, present godwit.Version, pushes uint64) bool {
	if since == 0 || since > present {
		return false
	}
	others := uint64(present - since)
	others -= min(others, pushes)
	return pushes >= leastBid && bidFactor*others <= pushes
}

// Wish begins a wish for a copy of the key.
func (l *Learner) Wish(k godwit.Key) {
	w := wish{credit: firstCredit, saves: 1}
	if t := l.find(k); t != nil {
		w.patience, w.saves = t.patience, int32(t.cost/max(t.pulls+t.pushes, 1))
		*t = trace{}
		l.used--
	}
	if l.wishes == nil {
		l.wishes = map[godwit.Key]wish{}
	}
	l.wishes[k] = w
	if len(l.order) >= 2*len(l.wishes)+firstTraces {
		l.compact()
	}
	l.order = append(l.order, k)
}

// Has reports whether there is a wish for the key.
func (l *Learner) Has(k godwit.Key) bool {
	if len(l.wishes) == 0 {
		return false
	}
	_, ok := l.wishes[k]
	return ok
}

// Wishes returns how many there are.
func (l *Learner) Wishes() int { return len(l.wishes) }

// A Worth is what it is judged from whether a wish goes on.
type Worth struct {
	Credit  int32  // that the copy had
	Saves   int32  // an access, as the accesses before the copy cost
	Saved   uint32 // accesses that the copy served since it was judged last
	Records uint32 // that rounds exchanged for it since
	Needed  bool   // its place is needed for another
}

// left returns the credit that is left.
func (x *Worth) left() int32 {
	return min(x.Credit+x.Saves*int32(min(x.Saved, mostCredit))-roundCost*int32(x.Records), mostCredit)
}

// Goes reports whether the wish goes on. Where its place is needed, it must have been used.
func (x *Worth) Goes() bool {
	if x.Needed {
		return x.Saved > 0
	}
	return x.left() >= 0
}

// Worth returns what a wish is worth of which the copy saved some accesses, and rounds exchanged some records.
func (l *Learner) Worth(k godwit.Key, saved uint32, records int) Worth {
	w := l.wishes[k]
	return Worth{Credit: w.credit, Saves: w.saves, Saved: saved, Records: uint32(records)}
}

// Weigh takes note of that.
func (l *Learner) Weigh(k godwit.Key, x *Worth) {
	w := l.wishes[k]
	w.credit = x.left()
	l.wishes[k] = w
}

// End ends a wish. The key must earn the next one: by more accesses if the copy was not
// worth its cost.
func (l *Learner) End(k godwit.Key) {
	w, ok := l.wishes[k]
	if !ok {
		return
	}
	delete(l.wishes, k)
	if w.credit < 0 {
		w.patience = min(w.patience+1, mostPatience)
	} else if w.patience > 0 {
		w.patience--
	}
	if w.patience == 0 {
		return
	}
	if t := l.trace(k); t != nil {
		t.patience = w.patience
	}
}

// Oldest returns the wish that was looked at least recently, and counts it as looked at.
// There must be one.
func (l *Learner) Oldest() godwit.Key {
	for {
		if l.hand >= len(l.order) {
			l.compact()
		}
		k := l.order[l.hand]
		l.hand++
		if l.Has(k) {
			return k
		}
	}
}

// compact begins the order anew, without wishes that have ended: with the one that is next.
func (l *Learner) compact() {
	rest, seen := make([]godwit.Key, 0, 2*len(l.wishes)+firstTraces), make(map[godwit.Key]bool, len(l.wishes))
	for _, keys := range [2][]godwit.Key{l.order[l.hand:], l.order[:l.hand]} {
		for _, k := range keys {
			if l.Has(k) && !seen[k] {
				seen[k] = true
				rest = append(rest, k)
			}
		}
	}
	l.order, l.hand = rest, 0
}

// Bytes returns about how much memory the learner takes.
func (l *Learner) Bytes() int {
	return 32*len(l.traces) + 40*len(l.wishes) + 8*cap(l.order)
}

// find returns the trace of a key, nil if there is none.
func (l *Learner) find(k godwit.Key) *trace {
	for i := range l.set(k) {
		if t := &l.set(k)[i]; t.key == k+1 {
			return t
		}
	}
	return nil
}

// trace returns the trace of a key. It begins one where there is none: if there is no place,
// the least of those that take it fades, or, if nothing of it is left, gives up its place. In
// the end, keys that cost more than others keep theirs. trace returns nil if there is
// no place for the key yet.
func (l *Learner) trace(k godwit.Key) *trace {
	if t := l.find(k); t != nil {
		return t
	}
	if 4*l.used >= 3*len(l.traces) && len(l.traces) < l.most() {
		l.grow()
	}
	set := l.set(k)
	least := &set[0]
	for i := range set {
		if t := &set[i]; t.key == 0 {
			*t = trace{key: k + 1}
			l.used++
			return t
		} else if t.worth() < least.worth() {
			least = t
		}
	}
	if least.worth() > 0 {
		least.fade()
		return nil
	}
	*least = trace{key: k + 1}
	return least
}

// worth is about how many accesses of other keys a trace withstands.
func (t *trace) worth() int { return bits.Len32(t.cost) + int(t.patience) }

// fade halves what is known.
func (t *trace) fade() {
	if t.cost == 0 {
		t.patience /= 2
	}
	t.cost, t.pulls, t.pushes, t.seen = t.cost/2, t.pulls/2, t.pushes/2, t.seen/2
}

// set returns the traces among which a key's is.
func (l *Learner) set(k godwit.Key) []trace {
	if len(l.traces) == 0 {
		return nil
	}
	h, _ := bits.Mul64(uint64(k)*0x9e3779b97f4a7c15, uint64(len(l.traces)/ways))
	return l.traces[ways*h : ways*h+ways]
}

// most returns how many traces there may be.
func (l *Learner) most() int {
	if l.Most == 0 {
		return maxTraces
	}
	return l.Most
}

// grow doubles the room for traces.
func (l *Learner) grow() {
	old := l.traces
	l.traces, l.used = make([]trace, max(firstTraces, 2*len(old))), 0
	for _, t := range old {
		if t.key == 0 {
			continue
		}
		if to := l.trace(t.key - 1); to != nil {
			*to = t
		}
	}
}
