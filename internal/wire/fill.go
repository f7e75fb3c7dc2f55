package wire

import "github.com/godwit-ps/godwit"

// Fill is Next of as many records as there is room for in recs. It returns how
// many it read; if that is not all, there are no more, or err says why.
func (d *Decoder) Fill(recs []Record) (n int, err error) {
	for n < len(recs) {
		n += d.usual(recs[n:])
		if n == len(recs) {
			break
		}
		if ok, err := d.Next(&recs[n]); !ok {
			return n, err
		}
		n++
	}
	return n, nil
}

// usual reads records of the current run as long as their entries are of the
// usual form: a key of one or two bytes with the next index, or none at all. It
// leaves the last of the run, and all others, to Next.
func (d *Decoder) usual(recs []Record) (n int) {
	x := &d.run
	if x.count < 2 || !x.begun || !x.fields.listed() || x.coding != Raw {
		return 0
	}
	b, at, l := d.entries, d.at, x.last
	withIndex := x.fields&fIndex != 0
	for n < len(recs) && x.count > 1 {
		if x.dense {
			l.key++
		} else {
			if len(b)-at < 2 {
				break
			}
			u, size := uint64(b[at]), 1
			if u >= 0x80 {
				if b[at+1] >= 0x80 {
					break
				}
				u, size = u&0x7f|uint64(b[at+1])<<7, 2
			}
			if withIndex {
				if u&1 != 0 {
					break
				}
				u >>= 1
			}
			at += size
			l.key += godwit.Key(unzigzag(u)) + 1
		}
		r := &recs[n]
		*r = Record{}
		r.Kind, r.Op, r.Origin, r.Hops, r.Coming, r.Key = x.kind, x.op, x.origin, x.hops, x.coming, l.key
		if withIndex {
			l.index += l.stride
			r.Index = l.index
		}
		if x.floats > 0 {
			r.Vals = d.floats(d.vals, x.floats)
			d.vals += 4 * x.floats
		}
		x.count--
		n++
	}
	d.at, x.last = at, l
	d.records += n
	return n
}
