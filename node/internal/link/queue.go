package link

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A queue is what is to be sent to one peer. Records are encoded into it under the
// shard's lock, so their order is the order in which things happened, and leave it
// in whole frames.
//
// It is bounded at the sources: workers and intents ask for so much only ([host.Limits]),
// and rounds leave refreshes and deltas for later. Answers always go in: there are no
// more of them than what the peer asked for, which is bounded there. So nobody who
// handles a frame ever waits for a socket. A peer that asks for more than it may and
// does not read ends the run.
//
// All of it is under mu.
type queue struct {
	mu      preempt.Mutex
	view    godwit.View
	enc     wire.Encoder // the frame that is being filled
	sealed  []sealed     // complete frames, in the order in which they leave
	urgent  int          // so many of sealed, the first ones, go before all records
	beat    []byte       // a heartbeat, which goes before all else; nil: none
	buffers *buffers
	full    int // bytes of a frame that waits for no more

	queued  int  // bytes in beat, sealed and enc, and in the frame being written; data frames without what an empty one has
	owing   int  // … of answers, in enc
	owed    int  // … in sealed and enc
	writing bool // somebody writes, and will find what is put in meanwhile
	wanted  bool // a flush came after the records in enc, which are to leave although it is not full
	over    bool // the goodbye was taken out: nothing is, after it

	pace   pace               // of the network
	unsent int                // bytes that the system had taken and not sent, when it was asked last
	kinds  [wire.Kinds]uint64 // bytes of records by kind, as they were put in
}

// A sealed frame is complete.
type sealed struct {
	frame []byte
	owed  int // bytes of answers in it
}

// add appends a record. It reports whether that filled a frame, which the caller sees to.
func (q *queue) add(r *wire.Record) (full bool) {
	before, grown := q.enc.Len(), q.enc.Grown()
	q.enc.Append(r)
	return q.added(r.Kind, before, grown)
}

// addGroup is add of a group.
func (q *queue) addGroup(g *wire.Group) (full bool) {
	before, grown := q.enc.Len(), q.enc.Grown()
	q.enc.AppendGroup(g)
	return q.added(g.Head.Kind, before, grown)
}

// added takes note of what was appended behind so many bytes. That may have shortened what other records took.
func (q *queue) added(kind wire.Kind, before, grown int) (full bool) {
	after := q.enc.Len()
	q.queued += after - before
	taken := q.enc.Grown() - grown
	q.kinds[kind] += uint64(taken)
	if answers(kind) {
		q.owing += taken
		q.owed += taken
	}
	if after < q.full {
		return false
	}
	q.seal()
	return true
}

// room reports whether less than limit bytes are queued.
func (q *queue) room(limit int) bool { return q.queued < limit }

// roomForCopies reports whether so few bytes are queued, here and in the system, that refreshes and deltas may be put in.
func (q *queue) roomForCopies(limit int) bool { return q.leftForCopies(limit) > 0 }

// leftForCopies returns how many bytes of them may be put in.
func (q *queue) leftForCopies(limit int) int { return q.pace.copies(limit) - q.queued - q.unsent }

// strained reports whether what is queued, and so many bytes more, takes the network longer than a step should wait for.
func (q *queue) strained(more int) bool { return q.pace.strained(q.queued + more) }

// crowded reports whether copies are, or were a moment ago, more than the network takes.
func (q *queue) crowded(now int64) bool { return q.pace.crowded(q.queued, now) }

// claim has the caller be the one who writes, and reports whether nobody else was.
func (q *queue) claim() bool {
	idle := !q.writing
	q.writing = true
	return idle
}

// want takes note that a flush has come, if one has.
func (q *queue) want(flush bool) { q.wanted = q.wanted || flush && q.enc.Records() > 0 }

// answers reports whether a record is sent because its receiver asked for
// something. All others are bounded by what this node has under way, or those
// whose requests it passes on.
func answers(k wire.Kind) bool { return answerKinds>>k&1 != 0 }

const answerKinds uint64 = 1<<wire.PullReply | 1<<wire.Done | 1<<wire.Refresh | 1<<wire.Transfer | 1<<wire.Refuse | 1<<wire.Ack | 1<<wire.Dropped | 1<<wire.InUse | 1<<wire.Scanned | 1<<wire.SyncAck | 1<<wire.BidReply | 1<<wire.RoundDone

// seal ends the frame that is being filled.
func (q *queue) seal() {
	q.wanted = false
	before := q.enc.Len()
	f := q.enc.Frame()
	q.queued += len(f) - before
	owed := min(q.owing, len(f)) // keys that follow each other take less than while the frame grew
	q.owed += owed - q.owing
	q.owing = 0
	q.sealed = append(q.sealed, sealed{f, owed})
	b := q.buffers.take()
	if b == nil && len(f) >= q.full { // the next will not be shorter
		b = make([]byte, 0, len(f)+len(f)/4)
	}
	q.enc.Reset(b, q.view)
}

// joinBytes is how long a frame is that leaves, while somebody writes, before a flush wants it. A shorter one takes both ends more
// processor time for the frame than for what is in it, and a round that is under way would leave in many.
const joinBytes = 8 << 10

// next takes the oldest frame out, and returns nil if there is none. The one that is being filled stays
// unless a flush wants it, or it is long and not only complete ones are asked for.
func (q *queue) next(complete bool) []byte {
	if q.over {
		return nil
	}
	if f := q.beat; f != nil {
		q.beat = nil
		return f
	}
	if len(q.sealed) == 0 {
		if !q.wanted && (complete || q.enc.Len() < joinBytes) {
			return nil
		}
		q.seal()
	}
	f := q.sealed[0]
	q.sealed = q.sealed[:copy(q.sealed, q.sealed[1:])]
	q.urgent = max(0, q.urgent-1)
	q.owed -= f.owed
	q.over = wire.IsGoodbye(f.frame)
	return f.frame
}

// first puts in a whole frame that is to leave before all records, behind what was put in so before.
func (q *queue) first(frame []byte, owed int) {
	q.whole(q.urgent, frame, owed)
	q.urgent++
}

// last puts in a whole frame behind all others.
func (q *queue) last(frame []byte) {
	if q.enc.Records() > 0 {
		q.seal()
	}
	q.whole(len(q.sealed), frame, 0)
}

// whole puts in a whole frame at a place among the sealed ones, with so many bytes of answers in it.
func (q *queue) whole(at int, frame []byte, owed int) {
	q.sealed = slices.Insert(q.sealed, at, sealed{frame, owed})
	q.queued += len(frame)
	q.owed += owed
}

// buffers are memory of frames that are sent, for those to come to any peer.
type buffers struct {
	preempt.Mutex
	free [][]byte
}

const maxBuffers = 32

func (b *buffers) take() []byte {
	b.Lock()
	defer b.Unlock()
	n := len(b.free)
	if n == 0 {
		return nil
	}
	buf := b.free[n-1]
	b.free = b.free[:n-1]
	return buf
}

func (b *buffers) give(buf []byte) {
	b.Lock()
	defer b.Unlock()
	if len(b.free) < maxBuffers && cap(buf) <= 2*frameBytes {
		b.free = append(b.free, buf)
	}
}
