package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
)

// An Encoder writes records into a data frame. It needs a Reset before its
// first use, and holds on to the buffer until the next.
type Encoder struct {
	Plain bool  // whoever gets the frames takes no codings: all values are Raw
	Lists *Sent // lists that the receiver remembers; nil: it does not

	buf     []byte // header and values
	runs    []byte // what comes behind
	records int
	shrunk  int // bytes that the ends of runs took off

	op     uint64 // of the run before
	origin godwit.NodeID
	run    run
}

// A run is the one that an encoder is writing, or a decoder reading: what its
// records share, and what the next entry refers to.
type run struct {
	kind   Kind
	fields field
	coming bool
	rough  bool
	whole  bool
	odd    bool
	saved  bool
	hops   uint8
	origin godwit.NodeID
	op     uint64
	floats int
	coding Coding
	step   float32 // if it is here and not with the values

	count int  // of records so far, or of a decoder: to come
	total int  // of a decoder: count at the beginning
	begun bool // there is an entry before
	dense bool // after the first, all keys and indexes are the next ones
	last  before

	at, first, second int  // of an encoder: where in runs the head, the first and the second entry begin
	listed, remember  bool // of a decoder: the entries are remembered ones, or are to be
}

// before is what an entry refers to: the fields of the one before.
type before struct {
	key     godwit.Key
	index   uint32
	stride  uint32 // between the indexes of the two before
	epoch   godwit.Epoch
	version godwit.Version
	seq     uint64
}

// first stands before the first entry of a run.
var first = before{key: ^godwit.Key(0), index: ^uint32(0), stride: 1}

const (
	headLen = 4 // kind, flags, count
	maxRun  = math.MaxUint16

	// maxHead bounds the bytes of a head: op, origin, hops, floats, coding, step.
	maxHead = headLen + 3*maxVarint + 1 + 1 + stepBytes
	// maxEntry bounds the bytes of an entry beside its holders: a difference of
	// keys that takes two numbers, index, epoch, version, seq, count.
	maxEntry = 7 * maxVarint
)

// wideKey stands before a difference of keys that leaves no room for the bit of
// the index.
const (
	wideKey  = math.MaxUint64 - 1
	narrowed = 1 << 62
)

// Reset begins a frame in the memory of buf, whose content is lost; buf may be
// nil. view is the sender's.
func (e *Encoder) Reset(buf []byte, view godwit.View) {
	e.buf = slices.Grow(buf[:0], DataLen)[:DataLen]
	putHeader(e.buf, typeData, view)
	clear(e.buf[HeaderLen:])
	e.runs, e.records, e.shrunk = e.runs[:0], 0, 0
	e.op, e.origin, e.run = 0, 0, run{}
}

// Append adds a record. It writes the fields that the kind carries and no
// others (see [Record.Check]), and panics if there is no such kind. It copies
// Vals and Holders. The caller begins a new frame in time: one that grew over
// [MaxFrame], or would without its codings, is refused by every receiver.
func (e *Encoder) Append(r *Record) {
	f := fieldsOf[r.Kind]
	if f == 0 {
		panic(r.Check())
	}
	coding, step := Raw, float32(0)
	if len(r.Vals) > 0 && f&fVals != 0 {
		if r.Coding == Raw || e.Plain {
			e.putRaw(r.Vals)
		} else {
			coding, step = e.putCoded(r.Vals, r.Coding, r.Step)
		}
	}
	if n := maxHead + maxEntry + 3*maxVarint*len(r.Holders); cap(e.runs)-len(e.runs) < n {
		e.runs = slices.Grow(e.runs, n)
	}
	if x := &e.run; !x.takes(r, coding, step) || x.count == maxRun || f&fKey == 0 {
		e.end()
		e.begin(r, f, coding, step)
	}
	e.entry(r)
	e.records++
}

// takes reports whether a record differs from those of the run in key, index and values only.
func (x *run) takes(r *Record, c Coding, step float32) bool {
	return x.kind == r.Kind && x.op == r.Op && x.origin == r.Origin && x.hops == r.Hops && x.coming == r.Coming && x.odd == r.Odd && x.saved == r.Saved &&
		x.floats == len(r.Vals) && x.rough == r.Rough && x.whole == r.Whole && x.coding == c && x.step == step
}

// putRaw appends values as they are.
func (e *Encoder) putRaw(vals []float32) {
	n := len(e.buf)
	at := (n + 3) &^ 3
	end := at + 4*len(vals)
	if end > cap(e.buf) {
		e.buf = slices.Grow(e.buf, end-n)
	}
	b := e.buf[:end]
	clear(b[n:at])
	putFloats(b[at:], vals)
	e.buf = b
}

// putCoded appends values in a coding, or in the next best that can write them.
// It returns that, and the step that belongs into the head.
func (e *Encoder) putCoded(vals []float32, c Coding, step float32) (Coding, float32) {
	if !c.fixed() {
		step = 0
	} else if len(vals) >= ownStep {
		c |= stepped
	}
	n := len(e.buf)
	e.buf = slices.Grow(e.buf, mostBytes(len(vals)))
	if b, ok := putCoded(e.buf, vals, c, step); ok {
		e.buf = b
		if c&stepped != 0 {
			step = 0
		}
		return c, step
	}
	e.buf = e.buf[:n]
	if c&Sparse == 0 {
		e.putRaw(vals)
		return Raw, 0
	}
	e.buf, _ = putCoded(e.buf, vals, Raw|Sparse, 0)
	return Raw | Sparse, 0
}

// begin writes the head of a run. There is room for it.
func (e *Encoder) begin(r *Record, f field, c Coding, step float32) {
	e.run = run{kind: r.Kind, fields: f, coming: r.Coming, rough: r.Rough, whole: r.Whole, odd: r.Odd, saved: r.Saved, hops: r.Hops, origin: r.Origin, op: r.Op, floats: len(r.Vals),
		coding: c, step: step, at: len(e.runs), dense: f.listed(), last: first}
	i := len(e.runs) + headLen
	b := e.runs[:cap(e.runs)]
	flags := byte(0)
	if f&fOp != 0 {
		if r.Op == e.op {
			flags |= sameOp
		} else {
			i = putUvarint(b, i, r.Op)
			e.op = r.Op
		}
	}
	if f&fOrigin != 0 {
		if r.Origin == e.origin {
			flags |= sameOrigin
		} else {
			i = putUvarint(b, i, uint64(r.Origin))
			e.origin = r.Origin
		}
	}
	if f&fRoute != 0 {
		if r.Coming {
			flags |= coming
		}
		b[i] = r.Hops
		i++
	}
	if f&fRough != 0 && r.Rough {
		flags |= rough
	}
	if f&fRough != 0 && r.Whole {
		flags |= whole
	}
	if f&fSide != 0 && r.Odd {
		flags |= odd
	}
	if f&fSaved != 0 && r.Saved {
		flags |= saved
	}
	if f&fVals != 0 {
		i = putUvarint(b, i, uint64(len(r.Vals)))
		if c != Raw {
			flags |= coded
			b[i] = byte(c)
			i++
			if c.fixed() && c&stepped == 0 {
				binary.LittleEndian.PutUint32(b[i:], math.Float32bits(step))
				i += stepBytes
			}
		}
	}
	b[e.run.at], b[e.run.at+1] = byte(r.Kind), flags
	e.run.first = i
	e.runs = b[:i]
}

// entry adds a record to the run. There is room for it.
func (e *Encoder) entry(r *Record) {
	x := &e.run
	x.count++
	f := x.fields
	if f&fKey == 0 {
		return
	}
	i := len(e.runs)
	b := e.runs[:cap(e.runs)]
	l := &x.last
	u := zigzag(int64(r.Key - l.key - 1))
	next := u == 0
	l.key = r.Key
	if f&fIndex != 0 {
		step := r.Index - l.index
		i = putIndexed(b, i, u, step, l.stride)
		next = next && step == l.stride
		if x.begun {
			l.stride = step
		}
		l.index = r.Index
	} else {
		i = putUvarint(b, i, u)
	}
	if f&(fEpoch|fVersion|fSeq|fHolders) != 0 {
		i = x.putRest(b, i, r)
	}
	if !x.begun {
		x.begun, x.second = true, i
	} else if !next {
		x.dense = false
	}
	e.runs = b[:i]
}

// putRest writes the fields of an entry behind key and index.
func (x *run) putRest(b []byte, i int, r *Record) int {
	f, l := x.fields, &x.last
	if f&fEpoch != 0 {
		i = putUvarint(b, i, zigzag32(int32(r.Epoch-l.epoch)))
		l.epoch = r.Epoch
	}
	if f&fVersion != 0 {
		i = putUvarint(b, i, zigzag(int64(r.Version-l.version)))
		l.version = r.Version
	}
	if f&fSeq != 0 {
		i = putUvarint(b, i, zigzag(int64(r.Seq-l.seq)))
		l.seq = r.Seq
	}
	if f&fHolders != 0 {
		i = putHolders(b, i, r.Holders)
	}
	return i
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

// end completes the run, if there is one. The next record begins another.
func (e *Encoder) end() {
	x := &e.run
	if x.count == 0 {
		return
	}
	whole := len(e.runs)
	head := e.runs[x.at:]
	binary.LittleEndian.PutUint16(head[2:], uint16(x.count))
	if x.dense && x.count > 1 {
		head[1] |= dense
		e.runs = e.runs[:x.second]
	} else if e.Lists != nil && x.count >= listRecords && x.fields.listed() {
		e.Lists.shorten(e)
	}
	e.shrunk += whole - len(e.runs)
	*x = run{}
}

// Len returns the bytes of the frame so far, its header included. The frame
// may become a little longer, or shorter where keys follow each other.
func (e *Encoder) Len() int { return len(e.buf) + len(e.runs) }

// Grown is Len as if no run of keys had been shortened at its end: each record adds to it what it takes
// by itself, whatever was before it.
func (e *Encoder) Grown() int { return e.Len() + e.shrunk }

// Records returns the number of records so far.
func (e *Encoder) Records() int { return e.records }

// Frame finishes the frame and returns it. It is valid until the next Append
// or Reset.
func (e *Encoder) Frame() []byte {
	e.end()
	n := len(e.buf)
	binary.LittleEndian.PutUint32(e.buf[HeaderLen:], uint32(n-DataLen))
	e.buf = append(e.buf, e.runs...)
	used := len(e.buf)
	e.buf = slices.Grow(e.buf, frameAlign-1)
	f := e.buf[:(used+frameAlign-1)&^(frameAlign-1)]
	clear(f[used:])
	putLen(f)
	e.buf = e.buf[:n]
	return f
}
