package trace

import (
	"encoding/binary"

	"github.com/godwit-ps/godwit"
)

// An Event is something that became of a key at a node.
type Event struct {
	Time  int64         // nanoseconds since the trace's start, by the node's clock
	Key   godwit.Key    // of which key
	Clock godwit.Clock  // of the node's worker that was furthest; of Accessed and Missed, of the worker
	Epoch godwit.Epoch  // of the key's ownership, as the node knew it; 0: not known, or the first
	N     uint32        // how many, of Accessed, Missed, RefreshCount, Lost and Thinned; else 0
	Node  godwit.NodeID // where
	Peer  godwit.NodeID // the other node that has to do with it; else Node
	Kind  Kind          // what

	Decision *Decision // of Decided; else nil
}

// A Kind says what an event is. The numbers are those of the file format, and up to Refused those of
// the protocol's events.
type Kind uint8

// The kinds of events.
const (
	Created      Kind = 1  // the home made the main copy, which nobody had touched
	Arrived      Kind = 2  // the main copy came from Peer; a replica that was here is part of it now
	Left         Kind = 3  // the main copy went to Peer, with the next epoch
	Copied       Kind = 4  // a replica was set up, with a row of Peer
	Refreshed    Kind = 5  // Peer, the owner, sent a newer row of a replica
	DropBegun    Kind = 6  // a replica is given up: its last update was sent
	Ended        Kind = 7  // a replica is gone
	Wanted       Kind = 8  // the first of the node's intents for the key became due
	Unwanted     Kind = 9  // … and the last one ended
	Asked        Kind = 10 // the key or a copy was asked of Peer
	Refused      Kind = 11 // … and Peer gives neither
	Decided      Kind = 12 // something was decided, see Decision
	Input        Kind = 13 // in files only: three numbers of the decision before
	Accessed     Kind = 16 // N accesses of a worker, since its last such event
	Missed       Kind = 17 // … N of them were not served at once
	RefreshCount Kind = 18 // N rows that refreshed a replica, since the last such event of the key: of keys of which not each is written, see [Writer.CountsRefresh]
	Owns         Kind = 32 // at the start of a segment: the node has the main copy
	Replicates   Kind = 33 // likewise: the node has a replica
	Lost         Kind = 48 // N events were not written
	Thinned      Kind = 49 // from here on details are those of one key of N, see [Writer.Takes]
)

var names = map[Kind]string{Created: "created", Arrived: "arrived", Left: "left", Copied: "copied", Refreshed: "refreshed", DropBegun: "drop begun", Ended: "ended",
	Wanted: "wanted", Unwanted: "unwanted", Asked: "asked", Refused: "refused", Decided: "decided", Input: "input", Accessed: "accessed", Missed: "missed", RefreshCount: "refresh count", Owns: "owns", Replicates: "replicates", Lost: "lost", Thinned: "thinned"}

// String returns the name of the kind.
func (k Kind) String() string {
	if s, ok := names[k]; ok {
		return s
	}
	return "unknown"
}

// moves reports whether copies come or go by an event of a kind.
func (k Kind) moves() bool { return k <= Copied || k == Ended }

// counts reports whether events of a kind carry a number in the place of the epoch.
func (k Kind) counts() bool { return k >= Accessed && k <= RefreshCount || k.ofAll() }

// ofAll reports whether events of a kind are of no key.
func (k Kind) ofAll() bool { return k == Lost || k == Thinned }

// details reports whether events of a kind say more of a key than where it is, how often it was refreshed and accessed.
func (k Kind) details() bool { return k == DropBegun || k >= Wanted && k <= Decided }

// RecordLen is the length of an event in a file:
//
//	byte 0          4         6      7      8           12          16          20
//	     | key, low | key, hi | kind | peer | time (µs) | clock     | epoch, n  |
//
// all little-endian. The time counts from the segment's base. A decision is followed by records of kind Input,
// which have three numbers in the place of time, clock and epoch, and in that of the peer how many more follow.
const RecordLen = 20

// MaxNodes bounds the nodes of a run that is traced: an event has one byte for a peer.
const MaxNodes = 256

const micro = 1000 // nanoseconds

// records is about how many records an event has.
func (e *Event) records() int {
	if e.Decision != nil {
		return 3
	}
	return 1
}

// append appends the record of an event of a segment with a base, in µs.
func (e *Event) append(b []byte, base int64) []byte {
	var ns notes
	ns.add(e)
	return ns.of[0].append(b, base, ns.numbers)
}

// keyOf returns the key of a record.
func keyOf(b []byte) godwit.Key {
	return godwit.Key(binary.LittleEndian.Uint32(b)) | godwit.Key(binary.LittleEndian.Uint16(b[4:]))<<32
}

// decode reads a record, which b begins with.
func decode(b []byte, h *Header) Event {
	e := Event{
		Key:   keyOf(b),
		Kind:  Kind(b[6]),
		Peer:  godwit.NodeID(b[7]),
		Time:  (int64(binary.LittleEndian.Uint32(b[8:])) + h.Base) * micro,
		Clock: godwit.Clock(binary.LittleEndian.Uint32(b[12:])),
		Node:  h.Node,
	}
	if n := binary.LittleEndian.Uint32(b[16:]); e.Kind.counts() {
		e.N = n
	} else {
		e.Epoch = godwit.Epoch(n)
	}
	return e
}
