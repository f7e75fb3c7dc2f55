package wire

import (
	"slices"

	"github.com/godwit-ps/godwit"
)

// An Encoder writes records into a data frame. It needs a Reset before its
// first use, and holds on to the buffer until the next.
type Encoder struct {
	buf     []byte
	records int
	last    before
}

// before is what a record may refer to: the fields of the records before it.
type before struct {
	key    godwit.Key
	op     uint64
	index  uint32
	origin godwit.NodeID
}

// noIndex stands before the first index, so that index 0 is "the next one".
const noIndex = ^uint32(0)

// maxFixed bounds the bytes of a record beside its holders and floats: head,
// hops, 8 varints (with the two counts), padding.
const maxFixed = 2 + 8*maxVarint + 3

// Reset begins a frame in the memory of buf, whose content is lost; buf may be
// nil. view is the sender's.
func (e *Encoder) Reset(buf []byte, view godwit.View) {
	e.buf = slices.Grow(buf[:0], HeaderLen)[:HeaderLen]
	putHeader(e.buf, typeData, view)
	e.records = 0
	e.last = before{index: noIndex}
}

// Append adds a record. It writes the fields that the kind carries and no
// others (see [Record.Check]), and panics if there is no such kind. It copies
// Vals and Holders. The caller begins a new frame in time: one that grew over
// [MaxFrame] is refused by every transport.
func (e *Encoder) Append(r *Record) {
	f := fieldsOf[r.Kind&kindMask]
	if f == 0 || r.Kind > kindMask {
		panic(r.Check())
	}
	room := maxFixed + 4*len(r.Vals) + 3*maxVarint*len(r.Holders)
	n := len(e.buf)
	b := slices.Grow(e.buf, room)[:n+room]

	at, i := n, n+1
	head := byte(r.Kind)
	if f&fKey != 0 {
		i = putUvarint(b, i, zigzag(int64(r.Key-e.last.key)))
		e.last.key = r.Key
	}
	if f&fOp != 0 {
		if r.Op == e.last.op {
			head |= sameOp
		} else {
			i = putUvarint(b, i, r.Op)
			e.last.op, e.last.index = r.Op, noIndex
		}
	}
	if f&fIndex != 0 {
		i = putUvarint(b, i, zigzag32(int32(r.Index-e.last.index-1)))
		e.last.index = r.Index
	}
	if f&fOrigin != 0 {
		if r.Origin == e.last.origin {
			head |= sameOrigin
		} else {
			i = putUvarint(b, i, uint64(r.Origin))
			e.last.origin = r.Origin
		}
	}
	if f&fRoute != 0 {
		if r.Coming {
			head |= coming
		}
		b[i] = r.Hops
		i++
	}
	if f&fEpoch != 0 {
		i = putUvarint(b, i, uint64(r.Epoch))
	}
	if f&fVersion != 0 {
		i = putUvarint(b, i, uint64(r.Version))
	}
	if f&fSeq != 0 {
		i = putUvarint(b, i, r.Seq)
	}
	if f&fHolders != 0 {
		i = putHolders(b, i, r.Holders)
	}
	if f&fVals != 0 {
		i = putVals(b, i, r.Vals)
	}
	b[at] = head
	e.buf = b[:i]
	e.records++
}

func putHolders(b []byte, i int, hs []Holder) int {
	i = putUvarint(b, i, uint64(len(hs)))
	for _, h := range hs {
		i = putUvarint(b, i, uint64(h.Node))
		i = putUvarint(b, i, h.Seq)
		i = putUvarint(b, i, uint64(h.Version))
	}
	return i
}

func putVals(b []byte, i int, vals []float32) int {
	i = putUvarint(b, i, uint64(len(vals)))
	if len(vals) == 0 {
		return i
	}
	for i&3 != 0 {
		b[i] = 0
		i++
	}
	putFloats(b[i:], vals)
	return i + 4*len(vals)
}

// Len returns the bytes of the frame so far, its header included.
func (e *Encoder) Len() int { return len(e.buf) }

// Records returns the number of records so far.
func (e *Encoder) Records() int { return e.records }

// Frame finishes the frame and returns it. It is valid until the next Append
// or Reset.
func (e *Encoder) Frame() []byte {
	n := len(e.buf)
	e.buf = slices.Grow(e.buf, frameAlign-1)
	f := e.buf[:(n+frameAlign-1)&^(frameAlign-1)]
	clear(f[n:])
	putLen(f)
	return f
}
