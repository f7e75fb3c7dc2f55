package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// MaxBatch is the most records of a Batch.
const MaxBatch = 64

// minBatch is how many records a run has at the least that is read in batches. Of
// shorter ones, Fill reads several together.
const minBatch = 4

// A Batch is some records of one run, as arrays: they differ in key, index and values
// only, and the values are raw, or those of BF16. Its memory is used again for the next one.
type Batch struct {
	Kind    Kind
	Op      uint64
	Origin  godwit.NodeID
	Hops    uint8
	Coming  bool
	Rough   bool
	Whole   bool
	Odd     bool
	Coding  Coding // Raw or BF16
	Floats  int    // of the values of each record
	Keys    []godwit.Key
	Indexes []uint32 // as many; 0 of kinds that have none

	vals    []float32 // of all records
	keys    [MaxBatch]godwit.Key
	indexes [MaxBatch]uint32
}

// Vals returns the values of a record. They live as long as those of a Record.
func (b *Batch) Vals(i int) []float32 {
	at := i * b.Floats
	return b.vals[at : at+b.Floats : at+b.Floats]
}

// Record writes a record of the batch to r.
func (b *Batch) Record(i int, r *Record) {
	*r = Record{}
	r.Kind, r.Op, r.Origin, r.Hops, r.Coming, r.Rough, r.Whole, r.Odd = b.Kind, b.Op, b.Origin, b.Hops, b.Coming, b.Rough, b.Whole, b.Odd
	r.Key, r.Index = b.Keys[i], b.Indexes[i]
	if b.Floats > 0 {
		r.Vals, r.Coding = b.Vals(i), b.Coding
	}
}

// Batch reads the next records into b, if they can be a batch, and returns how many
// they are. If that is 0, the next record is for Fill or Next to read, there are no more, or
// err says why.
func (d *Decoder) Batch(b *Batch) (n int, err error) {
	x := &d.run
	if x.count == 0 && !d.begin() {
		return 0, d.stopped()
	}
	if !d.batched() {
		return 0, nil
	}
	b.Kind, b.Op, b.Origin, b.Hops, b.Coming, b.Rough, b.Whole, b.Odd = x.kind, x.op, x.origin, x.hops, x.coming, x.rough, x.whole, x.odd
	b.Floats, b.Coding = x.floats, x.coding
	n = min(x.count, MaxBatch)
	b.Keys, b.Indexes = b.keys[:n], b.indexes[:n]
	if !d.batch(b.Keys, b.Indexes) {
		return 0, d.err
	}
	if b.vals = nil; x.floats > 0 && !d.batchVals(b, n*x.floats) {
		return 0, d.err
	}
	x.count -= n
	if x.count == 0 && !d.end() {
		return 0, d.err
	}
	return n, nil
}

// batchVals reads the values of a batch, of so many floats.
func (d *Decoder) batchVals(b *Batch, floats int) bool {
	if b.Coding == Raw {
		b.vals = d.floats(d.vals, floats)
		d.vals += 4 * floats
		return true
	}
	end := d.vals + floats*b.Coding.width()
	if end > d.valsEnd {
		return d.fail(d.vals, "%d floats are cut off, %d bytes of values left", floats, d.valsEnd-d.vals)
	}
	if d.copied+floats > MaxFrame/4 {
		return d.fail(d.vals, "more than %d floats in a frame", MaxFrame/4)
	}
	b.vals = d.room(floats)
	readDense(b.vals, d.frame[d.vals:end], b.Coding, 0)
	d.vals = end
	return true
}

// batched reports whether the records that are left of the run can be a batch.
func (d *Decoder) batched() bool {
	x := &d.run
	return x.count >= minBatch && x.fields.listed() && (x.coding == Raw || x.coding == BF16)
}

// batch reads as many entries as there are keys, and counts them as records.
func (d *Decoder) batch(keys []godwit.Key, indexes []uint32) bool {
	var r Record
	for i := 0; i < len(keys); i++ {
		if d.run.begun {
			n := d.usual(keys[i:], indexes[i:])
			d.records += n
			if i += n; i == len(keys) {
				break
			}
		}
		if !d.entry(&r) {
			return false
		}
		keys[i], indexes[i] = r.Key, r.Index
		d.records++
	}
	return true
}

// usual reads entries, of which none is the first of the run, as long as their numbers
// are of the usual lengths, and returns how many it read. The others are for entry.
func (d *Decoder) usual(keys []godwit.Key, indexes []uint32) (n int) {
	x, l := &d.run, d.run.last
	withIndex := x.fields&fIndex != 0
	b, at := d.entries, d.at
	for n < len(keys) {
		if x.dense {
			l.key++
		} else {
			u, size := uint64(0), 0
			if w := fourBytes(b, at); ^w&0x80808080 != 0 {
				ends := ^w & 0x80808080
				w &= ends ^ (ends - 1) // what is before the first end
				u = uint64(w&0x7f | w>>1&(0x7f<<7) | w>>2&(0x7f<<14) | w>>3&(0x7f<<21))
				size = bits.TrailingZeros32(ends)/8 + 1
			} else if u, size = shortUvarint(b, at); size == 0 {
				break
			}
			if withIndex {
				if u&1 != 0 {
					v, more := shortUvarint(b, at+size)
					if more == 0 || v > math.MaxUint32 {
						break
					}
					size += more
					l.stride = uint32(unzigzag32(v)) + 1
				}
				u >>= 1
			}
			at += size
			l.key += godwit.Key(unzigzag(u)) + 1
		}
		keys[n], indexes[n] = l.key, 0
		if withIndex {
			l.index += l.stride
			indexes[n] = l.index
		}
		n++
	}
	d.at, x.last = at, l
	return n
}

// fourBytes returns the bytes from a place on, as a number; if there are no four, one that has
// no end of a number.
func fourBytes(b []byte, at int) uint32 {
	if len(b)-at < 4 {
		return math.MaxUint32
	}
	return binary.LittleEndian.Uint32(b[at:])
}

// shortUvarint is uvarint of a number of up to 8 bytes that is not the end of b, without a
// branch for each. It returns how many bytes the number takes, 0 for another one.
func shortUvarint(b []byte, at int) (u uint64, size int) {
	if len(b)-at < 8 {
		return 0, 0
	}
	w := binary.LittleEndian.Uint64(b[at:])
	ends := ^w & 0x8080808080808080
	if ends == 0 {
		return 0, 0
	}
	w &= ends ^ (ends - 1) // what is before the first end
	const group = 0x7f
	u = w&group | w>>1&(group<<7) | w>>2&(group<<14) | w>>3&(group<<21) |
		w>>4&(group<<28) | w>>5&(group<<35) | w>>6&(group<<42) | w>>7&(group<<49)
	return u, bits.TrailingZeros64(ends)/8 + 1
}

// Fill is Next of as many records as there is room for in recs, up to the first of a run
// that can be read in batches. It returns how many it read, which is none only if there are
// no more, or err says why.
func (d *Decoder) Fill(recs []Record) (n int, err error) {
	for n < len(recs) && (n == 0 || !d.beforeBatch()) {
		if ok, err := d.Next(&recs[n]); !ok {
			return n, err
		}
		n++
	}
	return n, nil
}

// beforeBatch reports whether the next record is the first of a run that can be read in
// batches.
func (d *Decoder) beforeBatch() bool { return d.run.count == 0 && d.begin() && d.batched() }
