package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
)

// maxRecords bounds the records of a frame. Each takes a byte until the frame is full, so honest ones have far fewer; but keys that follow
// each other are written as a count, and a few bytes would keep a node at work for long.
const maxRecords = 1 << 22

// A Decoder reads the records of a data frame. It needs a Reset before its
// first use.
//
// What it hands out lives until the next Reset, and no longer than the bytes
// of the frame stay as they are: Vals of a record usually lies in the frame,
// else, like Holders, in memory of the decoder.
type Decoder struct {
	Lists *Known // lists that the sender may refer to; nil: none

	frame   []byte
	pos     int // in the runs, of the next run
	entries []byte
	at      int // in entries, of the next entry
	vals    int // where the values of the next record begin
	valsEnd int
	records int // read so far
	view    godwit.View
	op      uint64 // of the run before
	origin  godwit.NodeID
	run     run
	err     error
	unknown *UnknownListError // for the caller, who gets it once

	viewable bool      // floats can be used where they lie in frame
	scratch  []float32 // else they are copied to here
	copied   int       // floats that were, in this frame
	holders  []Holder  // those of all records so far
}

// Reset begins to read a whole frame, header included. It checks the header:
// the error is a *VersionError for a frame of another version of the protocol.
// After an error the decoder has no records.
func (d *Decoder) Reset(frame []byte) error {
	*d = Decoder{Lists: d.Lists, scratch: d.scratch[:0], holders: d.holders[:0]}
	view, err := parseHeader(frame, typeData)
	if err != nil {
		return err
	}
	if len(frame) < DataLen {
		return headerError(HeaderLen, fmt.Sprintf("data frame ends after %d of at least %d bytes", len(frame), DataLen))
	}
	values := binary.LittleEndian.Uint32(frame[HeaderLen:])
	if uint64(values) > uint64(len(frame)-DataLen) {
		return headerError(HeaderLen, fmt.Sprintf("%d bytes of values claimed, %d bytes left", values, len(frame)-DataLen))
	}
	if size := binary.LittleEndian.Uint32(frame[HeaderLen+4:]); size != 0 {
		return headerError(HeaderLen+4, fmt.Sprintf("length %d before compression, but the frame is not compressed", size))
	}
	d.frame, d.view = frame, view
	d.vals, d.valsEnd = DataLen, DataLen+int(values)
	d.pos = d.valsEnd
	d.viewable = canView(frame)
	return nil
}

// View returns the view that the sender of the frame had.
func (d *Decoder) View() godwit.View { return d.view }

// Records returns the number of records read since the last Reset.
func (d *Decoder) Records() int { return d.records }

// Next reads the next record into r and reports whether there was one. It sets
// every field of r; those that the kind does not carry become zero. An error is
// a *FormatError; it leaves r with nothing to rely on, and every further call
// returns the same, unless it is an *UnknownListError.
func (d *Decoder) Next(r *Record) (bool, error) {
	*r = Record{} // and then the fields: in one, it would be made elsewhere and copied
	x := &d.run
	if x.count == 0 && !d.begin() {
		return false, d.stopped()
	}
	x.count--
	r.Kind, r.Op, r.Origin, r.Hops, r.Coming, r.Rough, r.Whole, r.Odd, r.Saved = x.kind, x.op, x.origin, x.hops, x.coming, x.rough, x.whole, x.odd, x.saved
	f := x.fields
	if f&fKey != 0 && !d.entry(r) {
		return false, d.err
	}
	if f&fVals != 0 && x.floats > 0 {
		if r.Coding = x.coding; r.Coding == Raw {
			r.Vals = d.floats(d.vals, x.floats)
			d.vals += 4 * x.floats
		} else if !d.coded(r) {
			return false, d.err
		}
	}
	d.records++
	if x.count == 0 && !d.end() {
		return false, d.err
	}
	return true, nil
}

// stopped returns why there is no next record: nil, if there are no more.
func (d *Decoder) stopped() error {
	if e := d.unknown; e != nil {
		d.unknown = nil
		return e
	}
	return d.err
}

// Keep has the decoder keep what it has not read of the frame in memory of its
// own. It is for a frame that has to wait. What was handed out stays where it is.
func (d *Decoder) Keep() {
	d.frame = append(make([]byte, 0, max(len(d.frame), 2*frameAlign)), d.frame...)
	d.viewable = canView(d.frame)
}

// end leaves a run of which all entries were read.
func (d *Decoder) end() bool {
	x := &d.run
	switch {
	case x.listed:
		if d.at != len(d.entries) {
			return d.fail(d.pos, "%d bytes of a list belong to no record", len(d.entries)-d.at)
		}
		return true
	case x.remember && d.Lists != nil:
		entries := d.entries[d.pos:d.at]
		n := recordsOf(x.fields, x.total)
		d.Lists.remember(hashOf(entries, n), entries, n)
	}
	d.pos = d.at
	return true
}

// begin reads the head of a run. It reports false if there is none.
func (d *Decoder) begin() bool {
	if d.err != nil || d.ended() {
		return false
	}
	b, at, start := d.frame, d.pos, d.pos
	x := &d.run
	*x = run{kind: Kind(b[at]), last: first}
	f := fieldsOf[x.kind]
	if f == 0 {
		return d.fail(at, "unknown kind %d", x.kind)
	}
	if len(b)-at < headLen {
		return d.fail(at, "the head of a run is cut off")
	}
	flags := b[at+1]
	if extra := flags &^ f.flags(); extra != 0 {
		return d.fail(at+1, "flags %#02x do not belong to the kind", extra)
	}
	count := int(binary.LittleEndian.Uint16(b[at+2:]))
	if count == 0 || count > 1 && f&fKey == 0 {
		return d.fail(at+2, "a run of %d records", count)
	}
	if d.records+count > maxRecords {
		return d.fail(at+2, "more than %d records", maxRecords)
	}
	x.fields, x.coming, x.saved = f, f&fRoute != 0 && flags&coming != 0, f&fSaved != 0 && flags&saved != 0
	x.rough, x.whole, x.odd = f&fRough != 0 && flags&rough != 0, f&fRough != 0 && flags&whole != 0, f&fSide != 0 && flags&odd != 0
	var u uint64
	i := at + headLen
	if f&fOp != 0 {
		if flags&sameOp == 0 {
			at = i
			if u, i = uvarint(b, i); i < 0 {
				return d.fail(at, badNumber, "op", uint64(math.MaxUint64))
			}
			d.op = u
		}
		x.op = d.op
	}
	if f&fOrigin != 0 {
		if flags&sameOrigin == 0 {
			at = i
			if u, i = uvarint(b, i); i < 0 || u > uint64(godwit.NoNode) {
				return d.fail(at, badNumber, "origin", uint64(godwit.NoNode))
			}
			d.origin = godwit.NodeID(u)
		}
		x.origin = d.origin
	}
	if f&fRoute != 0 {
		if i == len(b) {
			return d.fail(i, badNumber, "hops", uint64(math.MaxUint8))
		}
		x.hops = b[i]
		i++
	}
	d.pos = i
	if f&fVals != 0 && !d.beginVals(count, flags) {
		return false
	}
	d.entries, d.at = d.frame, d.pos
	switch flags & (dense | listed | remember) {
	case dense:
		x.dense = true
	case remember:
		x.remember = true
	case listed:
		if !d.beginList(recordsOf(f, count)) {
			d.pos = start // to be read again when the list is known
			return false
		}
	case 0:
	default:
		return d.fail(start+1, "flags %#02x exclude each other", flags)
	}
	x.count, x.total = count, count
	return true
}

// beginList takes the entries of a run from a remembered list.
func (d *Decoder) beginList(records uint32) bool {
	if len(d.frame)-d.pos < hashLen {
		return d.fail(d.pos, "the hash of a list is cut off")
	}
	if d.Lists == nil {
		return d.fail(d.pos, "a list by its hash, where none is remembered")
	}
	h := readHash(d.frame[d.pos:])
	l := d.Lists.lists.use(h)
	if l == nil {
		d.unknown = &UnknownListError{h}
		return false
	}
	if l.records != records {
		return d.fail(d.pos, "a list of %d records in a run of %d", l.records&^indexed, records&^indexed)
	}
	d.run.listed = true
	d.entries, d.at = l.entries, 0
	d.pos += hashLen
	return true
}

// beginVals reads what a head says of the values of count records.
func (d *Decoder) beginVals(count int, flags byte) bool {
	x, b, at := &d.run, d.frame, d.pos
	n, i := uvarint(b, at)
	if i < 0 {
		return d.fail(at, badNumber, "number of floats", uint64(math.MaxUint64))
	}
	if n > MaxFrame/4 {
		return d.fail(at, "%d floats claimed, %d bytes of values left", n, d.valsEnd-d.vals)
	}
	x.floats = int(n)
	if flags&coded != 0 {
		if i == len(b) {
			return d.fail(i, "the coding is cut off")
		}
		x.coding = Coding(b[i])
		if !(x.coding &^ stepped).valid() || x.coding == Raw || x.coding == stepped || x.coding&stepped != 0 && !x.coding.fixed() || n == 0 {
			return d.fail(i, "coding %#02x of %d floats", x.coding, n)
		}
		i++
		if x.coding.fixed() && x.coding&stepped == 0 {
			if len(b)-i < stepBytes {
				return d.fail(i, "the step is cut off")
			}
			x.step = math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
			i += stepBytes
		}
	}
	d.pos = i
	if n == 0 || x.coding != Raw {
		return true // coded ones are looked at one record after the other
	}
	for ; d.vals&3 != 0; d.vals++ {
		if d.vals == d.valsEnd || b[d.vals] != 0 {
			return d.fail(d.vals, "the padding before %d floats is cut off or not zero", n)
		}
	}
	if n*uint64(count) > uint64(d.valsEnd-d.vals)/4 {
		return d.fail(at, "%d times %d floats claimed, %d bytes of values left", count, n, d.valsEnd-d.vals)
	}
	return true
}

// ended reports whether nothing but the zeros that fill a frame up are left,
// and skips them.
func (d *Decoder) ended() bool {
	rest := d.frame[d.pos:]
	if len(rest) >= frameAlign {
		return false
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	if d.vals != d.valsEnd {
		d.run = run{}
		d.fail(d.vals, "%d bytes of values belong to no record", d.valsEnd-d.vals)
		return true
	}
	d.pos = len(d.frame)
	return true
}

const badNumber = "%s is cut off or exceeds %d"

// entry reads what is the record's own.
func (d *Decoder) entry(r *Record) bool {
	x := &d.run
	l := &x.last
	if x.dense && x.begun {
		l.key++
		l.index += l.stride
		r.Key = l.key
		if x.fields&fIndex != 0 {
			r.Index = l.index
		}
		return true
	}
	b, i := d.entries, d.at
	f := x.fields
	u, i := uvarint(b, i)
	if i < 0 {
		return d.fail(d.at, badNumber, "key", uint64(math.MaxUint64))
	}
	if f&fIndex != 0 {
		far := u & 1
		if u >= wideKey {
			at := i
			if u, i = uvarint(b, i); i < 0 || u < narrowed {
				return d.fail(at, badNumber, "key", uint64(math.MaxUint64))
			}
		} else {
			u >>= 1
		}
		if far != 0 {
			at := i
			var v uint64
			if v, i = uvarint(b, i); i < 0 || v > math.MaxUint32 {
				return d.fail(at, badNumber, "index", uint64(math.MaxUint32))
			}
			step := uint32(unzigzag32(v)) + 1
			l.index += step
			if x.begun {
				l.stride = step
			}
		} else {
			l.index += l.stride
		}
		r.Index = l.index
	}
	l.key += godwit.Key(unzigzag(u)) + 1
	r.Key = l.key
	if f&(fEpoch|fVersion|fSeq|fHolders) != 0 {
		if i = d.rest(r, i); i < 0 {
			return false
		}
	}
	d.at = i
	x.begun = true
	return true
}

// rest reads the fields of an entry behind key and index, at i. It returns the
// index behind them, or -1 after a failure.
func (d *Decoder) rest(r *Record, i int) int {
	b, f, l := d.frame, d.run.fields, &d.run.last
	var u uint64
	if f&fEpoch != 0 {
		at := i
		if u, i = uvarint(b, i); i < 0 || u > math.MaxUint32 {
			d.fail(at, badNumber, "epoch", uint64(math.MaxUint32))
			return -1
		}
		l.epoch += godwit.Epoch(unzigzag32(u))
		r.Epoch = l.epoch
	}
	if f&fVersion != 0 {
		at := i
		if u, i = uvarint(b, i); i < 0 {
			d.fail(at, badNumber, "version", uint64(math.MaxUint64))
			return -1
		}
		l.version += godwit.Version(unzigzag(u))
		r.Version = l.version
	}
	if f&fSeq != 0 {
		at := i
		if u, i = uvarint(b, i); i < 0 {
			d.fail(at, badNumber, "seq", uint64(math.MaxUint64))
			return -1
		}
		l.seq += uint64(unzigzag(u))
		r.Seq = l.seq
	}
	if f&fHolders != 0 {
		i = d.readHolders(r, i)
	}
	return i
}

// readHolders reads the list of holders at i and returns the index behind it,
// or -1 after a failure.
func (d *Decoder) readHolders(r *Record, i int) int {
	b, at := d.frame, i
	n, i := uvarint(b, i)
	if i < 0 {
		d.fail(at, badNumber, "count of holders", uint64(math.MaxUint64))
		return -1
	}
	if n > uint64(len(b)-i)/3 { // each takes 3 bytes at least
		d.fail(at, "%d holders claimed, %d bytes left", n, len(b)-i)
		return -1
	}
	first := len(d.holders)
	for range n {
		var h Holder
		var u uint64
		at = i
		if u, i = uvarint(b, i); i < 0 || u > uint64(godwit.NoNode) {
			d.fail(at, badNumber, "node of a holder", uint64(godwit.NoNode))
			return -1
		}
		h.Node = godwit.NodeID(u)
		at = i
		if h.Seq, i = uvarint(b, i); i < 0 {
			d.fail(at, badNumber, "seq of a holder", uint64(math.MaxUint64))
			return -1
		}
		at = i
		if u, i = uvarint(b, i); i < 0 {
			d.fail(at, badNumber, "version of a holder", uint64(math.MaxUint64))
			return -1
		}
		h.Version = godwit.Version(u)
		d.holders = append(d.holders, h)
	}
	if n > 0 {
		r.Holders = d.holders[first:len(d.holders):len(d.holders)]
	}
	return i
}

// coded reads values that are not Raw.
func (d *Decoder) coded(r *Record) bool {
	x := &d.run
	b := d.frame[d.vals:d.valsEnd]
	n := codedLen(b, x.floats, x.coding)
	if n < 0 {
		return d.fail(d.vals, "%d floats are cut off, %d bytes of values left", x.floats, len(b))
	}
	if d.copied+x.floats > MaxFrame/4 {
		return d.fail(d.vals, "more than %d floats in a frame", MaxFrame/4)
	}
	r.Vals = d.room(x.floats)
	r.Coding = x.coding &^ stepped
	var ok bool
	if r.Step, ok = readCoded(r.Vals, b[:n], x.coding, x.step); !ok {
		return d.fail(d.vals, "bits for more than %d floats", x.floats)
	}
	d.vals += n
	return true
}

// room returns memory for n floats that lives until the next Reset.
func (d *Decoder) room(n int) []float32 {
	d.copied += n
	at := len(d.scratch)
	if at+n > cap(d.scratch) { // what was handed out stays in the memory before
		left := MaxFrame/4 - d.copied // of what a frame may have, behind these
		d.scratch = make([]float32, 0, max(n, min(2*cap(d.scratch), n+left)))
		at = 0
	}
	d.scratch = d.scratch[:at+n]
	return d.scratch[at : at+n : at+n]
}

// copiedFloats returns the n floats at offset i of the frame as a copy.
func (d *Decoder) copiedFloats(i, n int) []float32 {
	v := d.room(n)
	for j := range v {
		v[j] = math.Float32frombits(binary.LittleEndian.Uint32(d.frame[i+4*j:]))
	}
	return v
}

// fail keeps the first error. It returns false.
func (d *Decoder) fail(offset int, format string, args ...any) bool {
	d.err = &FormatError{Offset: offset, Record: d.records, Kind: d.run.kind, Reason: fmt.Sprintf(format, args...)}
	d.run.count = 0
	return false
}
