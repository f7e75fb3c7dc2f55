package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// What programs ask for comes again: the keys of a batch in the next epoch, the
// answer to a question about the same keys. So the two ends of a connection
// remember the entries of long runs, their lists, and the third time a list is
// sent as a hash of 128 bits, over all of it (key caching of Li et al., OSDI
// 2014, section 5.1, where both ends have to agree what is remembered).
//
// The second time that a sender comes across a list, the run says that the
// receiver is to remember it. Both ends do with their lists the same in the
// same order, frame by frame, so each knows what the other one has. A receiver
// that has forgotten a list nevertheless asks for it (a frame of type 3), and
// gets it (type 4):
//
//	byte  16       32        36       40
//	      ┌────────┬─────────┬────────┬────────────┬─────────┐
//	      │hash    │bytes    │records │entries …   │0…7 zeros│
//	      │16 bytes│u32      │u32     │            │         │
//	      └────────┴─────────┴────────┴────────────┴─────────┘
//
// The question ends with the hash. The highest bit of records says that the
// entries have indexes.

// A hash stands for a list, its number of records, and whether there are
// indexes in it. Its high half goes first on the wire.
type hash = xxh3.Uint128

const hashLen = 16

func hashOf(entries []byte, records uint32) hash { return xxh3.Hash128Seed(entries, uint64(records)) }

// indexed is set in a number of records whose entries have indexes.
const indexed = 1 << 31

func recordsOf(f field, count int) uint32 {
	if f&fIndex != 0 {
		return uint32(count) | indexed
	}
	return uint32(count)
}

const (
	listRecords = 32        // the shortest run whose list is remembered
	listRoom    = 1 << 20   // bytes of lists that an end remembers
	listLen     = 256 << 10 // the longest list
	listCost    = 256       // bytes of a list in the memory of an end, beside itself
	seenLists   = 1 << 10
)

// lists are what one end remembers, up to listRoom: the ones used last.
type lists struct {
	byHash map[hash]*list
	newest *list
	oldest *list
	bytes  int
	spare  *list // for its memory
}

type list struct {
	hash         hash
	entries      []byte
	records      uint32
	newer, older *list
}

// use returns a list and makes it the newest; nil if there is none.
func (l *lists) use(h hash) *list {
	x := l.byHash[h]
	if x != nil && x != l.newest {
		l.cut(x)
		l.link(x)
	}
	return x
}

// copied returns a new list, in the memory of one that is of no use any more
// where there is such.
func (l *lists) copied(h hash, entries []byte, records uint32) *list {
	x := l.spare
	l.spare = nil
	if x == nil {
		x = &list{}
	}
	x.hash, x.records = h, records
	x.entries = append(x.entries[:0], entries...)
	return x
}

// add remembers a list that is not there. It returns those that have to go for
// it, linked from the newest to older ones.
func (l *lists) add(x *list) (gone *list) {
	if l.byHash == nil {
		l.byHash = map[hash]*list{}
	}
	l.byHash[x.hash] = x
	l.link(x)
	l.bytes += len(x.entries) + listCost
	for l.bytes > listRoom {
		old := l.oldest
		l.cut(old)
		delete(l.byHash, old.hash)
		l.bytes -= len(old.entries) + listCost
		old.older = gone
		gone = old
	}
	return gone
}

func (l *lists) link(x *list) {
	x.older, x.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = x
	} else {
		l.oldest = x
	}
	l.newest = x
}

func (l *lists) cut(x *list) {
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		l.newest = x.older
	}
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		l.oldest = x.newer
	}
	x.newer, x.older = nil, nil
}

// Sent are the lists that a sender of frames remembers of one connection. The
// zero Sent is that of a new one. It goes with the Encoder of all frames of the
// connection, which must all be sent, in their order.
type Sent struct {
	Hits  uint64 // runs that were sent with a hash
	Saved uint64 // bytes that this took off

	lists lists
	seen  [seenLists]uint64 // hashes of lists that were sent, by some of their bits
	gone  lists             // forgotten ones, for a receiver that asks late
}

// shorten replaces the list of the run that ends, where that can be.
func (s *Sent) shorten(e *Encoder) {
	x := &e.run
	entries := e.runs[x.first:]
	if len(entries) > listLen {
		return
	}
	n := recordsOf(x.fields, x.count)
	h := hashOf(entries, n)
	if s.lists.use(h) != nil {
		s.Hits++
		s.Saved += uint64(len(entries) - hashLen)
		e.runs[x.at+1] |= listed
		e.runs = appendHash(e.runs[:x.first], h)
		return
	}
	if at := &s.seen[h.Lo%seenLists]; *at != h.Hi {
		*at = h.Hi
		return
	}
	e.runs[x.at+1] |= remember
	for old := s.lists.add(s.lists.copied(h, entries, n)); old != nil; {
		next := old.older
		s.lists.spare = old
		if s.gone.use(old.hash) == nil {
			s.lists.spare = s.gone.add(old)
		}
		old = next
	}
}

// Answer returns the frame that answers a receiver's question for a list.
func (s *Sent) Answer(question []byte) ([]byte, error) {
	if _, err := parseHeader(question, typeWant); err != nil {
		return nil, err
	}
	if len(question) != HeaderLen+hashLen {
		return nil, headerError(HeaderLen, fmt.Sprintf("a question for a list of %d bytes, want %d", len(question), HeaderLen+hashLen))
	}
	h := readHash(question[HeaderLen:])
	x := s.lists.byHash[h]
	if x == nil {
		x = s.gone.byHash[h]
	}
	if x == nil {
		return nil, headerError(HeaderLen, fmt.Sprintf("a question for the list %016x%016x, which was not sent", h.Hi, h.Lo))
	}
	b := make([]byte, HeaderLen, HeaderLen+hashLen+8+len(x.entries)+frameAlign)
	putHeader(b, typeList, 0)
	b = appendHash(b, x.hash)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.entries)))
	b = binary.LittleEndian.AppendUint32(b, x.records)
	b = append(b, x.entries...)
	for len(b)%frameAlign != 0 {
		b = append(b, 0)
	}
	putLen(b)
	return b, nil
}

// Known are the lists that a receiver remembers of one connection. The zero
// Known is that of a new one. It goes with the Decoder of all its frames.
type Known struct{ lists lists }

// Forget forgets all lists, which a receiver never does by itself.
func (k *Known) Forget() { k.lists = lists{} }

// Learn takes the answer to a question for a list.
func (k *Known) Learn(answer []byte) error {
	if _, err := parseHeader(answer, typeList); err != nil {
		return err
	}
	const fixed = HeaderLen + hashLen + 8
	if len(answer) < fixed {
		return headerError(HeaderLen, fmt.Sprintf("a list of %d bytes, want at least %d", len(answer), fixed))
	}
	n := binary.LittleEndian.Uint32(answer[HeaderLen+hashLen:])
	if uint64(n) > uint64(len(answer)-fixed) || n > listLen {
		return headerError(HeaderLen+hashLen, fmt.Sprintf("a list of %d bytes claimed, %d bytes left", n, len(answer)-fixed))
	}
	records := binary.LittleEndian.Uint32(answer[HeaderLen+hashLen+4:])
	entries := answer[fixed : fixed+n]
	h := hashOf(entries, records)
	if h != readHash(answer[HeaderLen:]) {
		return headerError(HeaderLen, "a list that does not have its hash")
	}
	k.remember(h, entries, records)
	return nil
}

func (k *Known) remember(h hash, entries []byte, records uint32) {
	if l := &k.lists; l.use(h) == nil {
		if old := l.add(l.copied(h, entries, records)); old != nil {
			old.older, l.spare = nil, old
		}
	}
}

// An UnknownListError says that a run has a list that the receiver does not
// know. The Decoder goes on where it is once it does.
type UnknownListError struct{ hash hash }

func (e *UnknownListError) Error() string {
	return fmt.Sprintf("wire: the list %016x%016x is not known here", e.hash.Hi, e.hash.Lo)
}

// Question returns the frame that asks the sender for the list.
func (e *UnknownListError) Question() []byte {
	b := make([]byte, HeaderLen, HeaderLen+hashLen)
	putHeader(b, typeWant, 0)
	b = appendHash(b, e.hash)
	putLen(b)
	return b
}

func appendHash(b []byte, h hash) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, h.Hi), h.Lo)
}

func readHash(b []byte) hash {
	return hash{Hi: binary.LittleEndian.Uint64(b), Lo: binary.LittleEndian.Uint64(b[8:])}
}
