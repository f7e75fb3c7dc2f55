package trace

import (
	"encoding/binary"

	"github.com/godwit-ps/godwit"
)

// A note is an event that waits to be written, at a node that all of them are of. It has no pointers: there may be 100,000 notes, and
// the collector of garbage need not look at them.
type note struct {
	time    int64 // nanoseconds
	key     godwit.Key
	clock   uint32
	number  uint32 // the epoch, or how many
	kind    Kind
	peer    uint8
	numbers uint8 // how many numbers a decision has
}

// Notes are in the order in which they were taken.
type notes struct {
	of      []note
	numbers []uint32 // of decisions, one after the other
}

// add takes an event, and keeps nothing of its decision.
func (ns *notes) add(e *Event) {
	n := note{time: e.Time, key: e.Key, clock: uint32(e.Clock), number: uint32(e.Epoch), kind: e.Kind, peer: uint8(e.Peer)}
	if e.Kind.counts() {
		n.number = e.N
	}
	if e.Decision != nil {
		before := len(ns.numbers)
		ns.numbers = e.Decision.appendTo(ns.numbers)
		n.numbers = uint8(len(ns.numbers) - before) // up to 6 + MaxNodes / 4
	}
	ns.of = append(ns.of, n)
}

// clear forgets all, and keeps the room.
func (ns *notes) clear() { ns.of, ns.numbers = ns.of[:0], ns.numbers[:0] }

// cut returns the first n notes, which ns has no more.
func (ns *notes) cut(n int) (first notes) {
	numbers := 0
	for i := range ns.of[:n] {
		numbers += int(ns.of[i].numbers)
	}
	first = notes{ns.of[:n], ns.numbers[:numbers]}
	ns.of, ns.numbers = ns.of[n:], ns.numbers[numbers:]
	return first
}

// append appends the record of a note of a segment with a base, in µs, and those of its numbers.
func (n *note) append(b []byte, base int64, numbers []uint32) []byte {
	var r [RecordLen]byte
	binary.LittleEndian.PutUint32(r[:], uint32(n.key))
	binary.LittleEndian.PutUint16(r[4:], uint16(n.key>>32))
	r[6], r[7] = byte(n.kind), n.peer
	binary.LittleEndian.PutUint32(r[8:], uint32(max(0, n.time/micro-base)))
	binary.LittleEndian.PutUint32(r[12:], n.clock)
	binary.LittleEndian.PutUint32(r[16:], n.number)
	b = append(b, r[:]...)
	if n.numbers > 0 {
		b = appendInputs(b, r[:6], numbers[:n.numbers])
	}
	return b
}
