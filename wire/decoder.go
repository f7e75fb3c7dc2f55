package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
)

// A Decoder reads the records of a data frame. It needs a Reset before its
// first use.
//
// What it hands out lives until the next Reset, and no longer than the bytes
// of the frame stay as they are: Vals of a record usually lies in the frame,
// Holders in memory of the decoder.
type Decoder struct {
	frame   []byte
	pos     int
	records int // read so far
	view    godwit.View
	last    before
	err     error

	viewable bool      // floats can be used where they lie in frame
	vals     []float32 // else they are copied to the same place in here
	holders  []Holder  // those of all records so far
}

// Reset begins to read a whole frame, header included. It checks the header:
// the error is a *VersionError for a frame of another version of the protocol.
// After an error the decoder has no records.
func (d *Decoder) Reset(frame []byte) error {
	*d = Decoder{vals: d.vals, holders: d.holders[:0], last: before{index: noIndex}}
	view, err := parseHeader(frame, typeData)
	if err != nil {
		return err
	}
	d.frame, d.pos, d.view = frame, HeaderLen, view
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
// returns the same.
func (d *Decoder) Next(r *Record) (bool, error) {
	if d.pos == len(d.frame) || d.err != nil {
		*r = Record{}
		return false, d.err
	}
	b, i := d.frame, d.pos+1
	head := b[d.pos]
	*r = Record{} // and then the kind: in one, it would be made elsewhere and copied
	r.Kind = Kind(head & kindMask)
	f := fieldsOf[head&kindMask]
	if f == 0 {
		if d.ended() {
			*r = Record{}
			return false, nil
		}
		return d.fail(r, d.pos, "unknown kind %d", r.Kind)
	}
	if extra := head &^ kindMask &^ f.flags(); extra != 0 {
		return d.fail(r, d.pos, "flags %#02x do not belong to the kind", extra)
	}
	var u uint64
	at := i
	if f&fKey != 0 {
		if u, i = uvarint(b, i); i < 0 {
			return d.fail(r, at, badNumber, "key", uint64(math.MaxUint64))
		}
		d.last.key += godwit.Key(unzigzag(u))
		r.Key = d.last.key
	}
	if f&fOp != 0 {
		if head&sameOp == 0 {
			at = i
			if u, i = uvarint(b, i); i < 0 {
				return d.fail(r, at, badNumber, "op", uint64(math.MaxUint64))
			}
			d.last.op, d.last.index = u, noIndex
		}
		r.Op = d.last.op
	}
	if f&fIndex != 0 {
		at = i
		if u, i = uvarint(b, i); i < 0 || u > math.MaxUint32 {
			return d.fail(r, at, badNumber, "index", uint64(math.MaxUint32))
		}
		d.last.index += uint32(unzigzag32(u)) + 1
		r.Index = d.last.index
	}
	if f&fOrigin != 0 {
		if head&sameOrigin == 0 {
			at = i
			if u, i = uvarint(b, i); i < 0 || u > uint64(godwit.NoNode) {
				return d.fail(r, at, badNumber, "origin", uint64(godwit.NoNode))
			}
			d.last.origin = godwit.NodeID(u)
		}
		r.Origin = d.last.origin
	}
	if f&fRoute != 0 {
		if i == len(b) {
			return d.fail(r, i, badNumber, "hops", uint64(math.MaxUint8))
		}
		r.Hops, r.Coming = b[i], head&coming != 0
		i++
	}
	if f&fEpoch != 0 {
		at = i
		if u, i = uvarint(b, i); i < 0 || u > math.MaxUint32 {
			return d.fail(r, at, badNumber, "epoch", uint64(math.MaxUint32))
		}
		r.Epoch = godwit.Epoch(u)
	}
	if f&fVersion != 0 {
		at = i
		if u, i = uvarint(b, i); i < 0 {
			return d.fail(r, at, badNumber, "version", uint64(math.MaxUint64))
		}
		r.Version = godwit.Version(u)
	}
	if f&fSeq != 0 {
		at = i
		if u, i = uvarint(b, i); i < 0 {
			return d.fail(r, at, badNumber, "seq", uint64(math.MaxUint64))
		}
		r.Seq = u
	}
	if f&fHolders != 0 {
		if i = d.readHolders(r, i); i < 0 {
			return false, d.err
		}
	}
	if f&fVals != 0 {
		if i = d.readVals(r, i); i < 0 {
			return false, d.err
		}
	}
	d.pos = i
	d.records++
	return true, nil
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
	d.pos = len(d.frame)
	return true
}

const badNumber = "%s is cut off or exceeds %d"

// readHolders reads the list of holders at i and returns the index behind it,
// or -1 after a failure.
func (d *Decoder) readHolders(r *Record, i int) int {
	b, at := d.frame, i
	n, i := uvarint(b, i)
	if i < 0 {
		d.fail(r, at, badNumber, "count of holders", uint64(math.MaxUint64))
		return -1
	}
	if n > uint64(len(b)-i)/3 { // each takes 3 bytes at least
		d.fail(r, at, "%d holders claimed, %d bytes left", n, len(b)-i)
		return -1
	}
	first := len(d.holders)
	for range n {
		var h Holder
		var u uint64
		at = i
		if u, i = uvarint(b, i); i < 0 || u > uint64(godwit.NoNode) {
			d.fail(r, at, badNumber, "node of a holder", uint64(godwit.NoNode))
			return -1
		}
		h.Node = godwit.NodeID(u)
		at = i
		if h.Seq, i = uvarint(b, i); i < 0 {
			d.fail(r, at, badNumber, "seq of a holder", uint64(math.MaxUint64))
			return -1
		}
		at = i
		if u, i = uvarint(b, i); i < 0 {
			d.fail(r, at, badNumber, "version of a holder", uint64(math.MaxUint64))
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

// readVals reads count, padding and floats at i and returns the index behind
// them, or -1 after a failure.
func (d *Decoder) readVals(r *Record, i int) int {
	b, at := d.frame, i
	n, i := uvarint(b, i)
	if i < 0 {
		d.fail(r, at, badNumber, "count of floats", uint64(math.MaxUint64))
		return -1
	}
	if n == 0 {
		return i
	}
	for i&3 != 0 {
		if i == len(b) || b[i] != 0 {
			d.fail(r, i, "the padding before %d floats is cut off or not zero", n)
			return -1
		}
		i++
	}
	if n > uint64(len(b)-i)/4 {
		d.fail(r, at, "%d floats claimed, %d bytes left", n, len(b)-i)
		return -1
	}
	r.Vals = d.floats(i, int(n))
	return i + 4*int(n)
}

// copiedFloats returns the n floats at b[i] as a copy. The copies of a frame
// share one slice, each at the place that it has in the frame, so they live as
// long as views would.
func (d *Decoder) copiedFloats(i, n int) []float32 {
	if want := len(d.frame) / 4; cap(d.vals) < want {
		d.vals = make([]float32, want)
	}
	v := d.vals[:cap(d.vals)][i/4 : i/4+n : i/4+n]
	for j := range v {
		v[j] = math.Float32frombits(binary.LittleEndian.Uint32(d.frame[i+4*j:]))
	}
	return v
}

func (d *Decoder) fail(r *Record, offset int, format string, args ...any) (bool, error) {
	d.err = &FormatError{Offset: offset, Record: d.records, Kind: r.Kind, Reason: fmt.Sprintf(format, args...)}
	return false, d.err
}
