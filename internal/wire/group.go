package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
)

// MaxGroup is the most records of a Group.
const MaxGroup = 16

// A Group is some records to be appended together that differ in key, index and values only, as
// arrays. Their kind has a key and an index and no field but these that differs from one to the
// next: requests and replies are so. The values are raw, all of one length.
type Group struct {
	Head Record // what they share

	n       int
	keys    [MaxGroup]godwit.Key
	indexes [MaxGroup]uint32
	vals    [MaxGroup][]float32 // not of kinds without values
}

// Len returns how many records the group has.
func (g *Group) Len() int { return g.n }

// Empty takes all records out.
func (g *Group) Empty() { g.n = 0 }

// Takes reports whether a record with so many floats can be added.
func (g *Group) Takes(floats int) bool {
	return g.n == 0 || g.n < MaxGroup && len(g.vals[0]) == floats && (g.n+1)*floats <= maxGroupFloats
}

// maxGroupFloats bounds the values of a group of several records, so that a frame grows hardly
// beyond what it is meant to have.
const maxGroupFloats = 2048

// Add adds a record. The values are not copied, and must stay as they are until the group is
// appended.
func (g *Group) Add(k godwit.Key, index uint32, vals []float32) {
	i := g.n
	g.keys[i], g.indexes[i], g.vals[i] = k, index, vals
	g.n++
}

// Record returns a record of the group, in the memory of Head.
func (g *Group) Record(i int) *Record {
	r := &g.Head
	r.Key, r.Index, r.Vals = g.keys[i], g.indexes[i], g.vals[i]
	return r
}

// AppendGroup is Append of the records of a group, which is not empty.
func (e *Encoder) AppendGroup(g *Group) {
	r, from := g.Record(0), 0
	x := &e.run
	if g.Head.Coding != Raw || !x.takes(r, Raw, 0) {
		e.Append(r)
		from = 1
	}
	if from == g.n {
		return
	}
	if x.count+g.n > maxRun || g.Head.Coding != Raw || !x.fields.listed() || x.fields&fIndex == 0 {
		for i := from; i < g.n; i++ {
			e.Append(g.Record(i))
		}
		return
	}
	if x.floats > 0 {
		e.putAllRaw(g.vals[from:g.n])
	}
	if n := g.n * maxEntry; cap(e.runs)-len(e.runs) < n {
		e.runs = slices.Grow(e.runs, n)
	}
	e.entries(g.keys[from:g.n], g.indexes[from:g.n])
}

// putAllRaw is putRaw of several values of one length.
func (e *Encoder) putAllRaw(vals [][]float32) {
	at, each := (len(e.buf)+3)&^3, 4*len(vals[0])
	end := at + each*len(vals)
	if end > cap(e.buf) {
		e.buf = slices.Grow(e.buf, end-len(e.buf))
	}
	b := e.buf[:end]
	clear(b[len(e.buf):at])
	for i, v := range vals {
		putFloats(b[at+i*each:], v)
	}
	e.buf = b
}

// entries is entry of several records of a run that has begun, and whose kind has key and index
// only. There is room for them.
func (e *Encoder) entries(keys []godwit.Key, indexes []uint32) {
	x, l, i := &e.run, e.run.last, len(e.runs)
	b := e.runs[:cap(e.runs)]
	next := true
	for j, k := range keys {
		index := indexes[j]
		u, step := zigzag(int64(k-l.key-1)), index-l.index
		l.key, l.index = k, index
		next = next && u == 0 && step == l.stride
		if u >= narrowed || step != l.stride {
			i = putIndexed(b, i, u, step, l.stride)
			l.stride = step
			continue
		}
		switch u <<= 1; {
		case u < 1<<7:
			b[i] = byte(u)
			i++
		case u < 1<<14:
			b[i], b[i+1] = byte(u)|0x80, byte(u>>7)
			i += 2
		case u < 1<<28 && len(b)-i >= 4:
			size := (bits.Len64(u) + 6) / 7
			spread := uint32(u)&0x7f | uint32(u)<<1&0x7f00 | uint32(u)<<2&0x7f0000 | uint32(u)<<3&0x7f000000
			binary.LittleEndian.PutUint32(b[i:], spread|0x80808080>>(8*(5-size)))
			i += size
		default:
			i = putUvarint(b, i, u)
		}
	}
	if !next {
		x.dense = false
	}
	x.last, x.count = l, x.count+len(keys)
	e.records += len(keys)
	e.runs = b[:i]
}

// putIndexed writes the key and the index of an entry: how far they are from those before, where
// the usual distance of indexes is the stride.
func putIndexed(b []byte, i int, u uint64, step, stride uint32) int {
	far := uint64(0)
	if step != stride {
		far = 1
	}
	if u < narrowed {
		u = u<<1 | far
	} else {
		i = putUvarint(b, i, wideKey|far)
	}
	i = putUvarint(b, i, u)
	if far != 0 {
		i = putUvarint(b, i, zigzag32(int32(step-1)))
	}
	return i
}
