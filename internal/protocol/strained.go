package protocol

import (
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file makes values fewer bytes where bytes bound the network (Out.Strained), and copies (Out.Crowded).
//
// A replica's update is rounded to the nearest as filters round it (rounding.go): what that takes off stays in the replica.
// A refresh is rounded, too, if the holder has a row: it is the base of what the holder's workers push, as it came, so
// what they push is exact. The row is sent whole each time, so that what rounding takes off does not add up. An
// exact one follows when there is room again, or when somebody waits for rounds, and is sent before the key moves and before
// an answer to the holder. So only a holder of which the owner knows it ever has a rounded row.

// Brief rounds the value of an answer to a request of another node, if a filter does that, or if
// bytes bound the way there, and request and table allow it. It does so in the memory of scratch, which
// it returns.
func (u *Update) Brief(out Out, answer, request *wire.Record, scratch []float32, stats *Stats) []float32 {
	switch {
	case u.Rounds() && !request.Whole:
		return u.Round(answer, request, scratch, stats)
	case request.Rough && u.roundable && out.Strained(request.Origin):
		return roundNearest(answer, scratch, stats)
	}
	return scratch
}

// Briefs reports whether Brief may round: a filter does, or values that are asked for roughly may be.
func (u *Update) Briefs(rough bool) bool { return u.Rounds() || rough && u.roundable }

// omitZeros has the zeros of a vector left out of the bytes that it takes, if there are enough of
// them: nothing is rounded. Differences of wide rows, of which few floats changed, have many. It returns how many
// floats are left.
func omitZeros(r *wire.Record) (left int) {
	const enough = 2 // of so many floats, one at the least
	n := len(r.Vals)
	most := n - max(9, n/enough) // that may be left
	x := r.Vals
	for ; len(x) >= 8 && left <= most; x = x[8:] { // rows without zeros are most, and need not be read to their end
		left += one(x[0]) + one(x[1]) + one(x[2]) + one(x[3]) + one(x[4]) + one(x[5]) + one(x[6]) + one(x[7])
	}
	if left <= most {
		for _, f := range x {
			left += one(f)
		}
	}
	if left > most {
		return n
	}
	r.Coding = wire.Sparse
	return left
}

// one returns 0 of a zero with a plus sign, which is left out, and 1 of all else.
func one(x float32) int {
	b := math.Float32bits(x)
	return int((b | -b) >> 31)
}

// shorten has the values of a copy take fewer bytes, if they can without being rounded.
func shorten(out Out, to godwit.NodeID, r *wire.Record) {
	const enough = 4 // of fewer floats, what is saved is less than what the step takes
	if omitZeros(r) < enough || !out.Crowded(to) {
		return
	}
	if c := wholeOf(r.Vals); c != wire.Raw {
		r.Coding, r.Step = r.Coding|c, 1
	}
}

// wholeOf returns the shortest coding of values that are whole numbers, as counts are; Raw if they are not.
func wholeOf(vals []float32) wire.Coding {
	const one, two = math.MaxInt8, math.MaxInt16
	c := wire.Fixed8
	for _, x := range vals {
		n := int32(max(-two-1, min(x, two+1)))
		switch {
		case float32(n) != x || n < -two || n > two:
			return wire.Raw
		case n < -one || n > one:
			c = wire.Fixed16
		}
	}
	return c
}

// roundNearest rounds the values of an answer, in the memory of scratch, which it
// returns.
func roundNearest(r *wire.Record, scratch []float32, stats *Stats) []float32 {
	scratch = slices.Grow(scratch[:0], len(r.Vals))[:len(r.Vals)]
	vec.RoundBF16(scratch, r.Vals)
	r.Vals, r.Coding = scratch, wire.BF16
	stats.rounded(godwit.Encoding{Coding: godwit.BFloat16}, scratch)
	return scratch
}

// nearest rounds to the nearest values of bfloat16.
type nearest struct{ godwit.Quantizer }

func (nearest) Quantize(vals []float32, _ uint64) godwit.Encoding {
	vec.RoundBF16(vals, vals)
	return godwit.Encoding{Coding: godwit.BFloat16}
}

// crowded reports whether copies that may be rounded go to a node in fewer bytes.
func (s *Shard) crowded(out Out, to godwit.NodeID) bool { return s.cfg.ahead && out.Crowded(to) }

// roundRefresh rounds the row on its way to a holder, if the way is crowded and the table allows it.
func (s *Shard) roundRefresh(out Out, h *store.Header, to *holder) {
	i, _ := s.cfg.Model.Locate(h.Key)
	if x := s.cfg.updates[i].rounding; x == nil || !x.crowded || !s.crowded(out, to.node) {
		return
	}
	s.diff = roundNearest(&s.rec, s.diff, &s.Stats)
	to.marks |= rough
	if m := s.main(h); !m.rough {
		m.rough = true
		s.roughs = append(s.roughs, h.Key)
	}
}

// mend sends exact rows to holders that have rounded ones and do not rest, where the way is not crowded any more; if all
// is set, to all of them. It reports whether something had to stay that is to be sent now. After some keys that had to stay, it leaves the others to the
// next call, which begins with these.
func (s *Shard) mend(out Out, all bool) (held bool) {
	stay := 0
	for i := len(s.roughs) - 1; i >= 0 && stay < mostStay; i-- {
		if s.mendEach(out, s.roughs[i], all) {
			s.roughs = slices.Delete(s.roughs, i, i+1)
		} else {
			stay++
		}
	}
	if stay == mostStay {
		var last [mostStay]godwit.Key
		copy(last[:], s.roughs[len(s.roughs)-stay:])
		copy(s.roughs[stay:], s.roughs)
		copy(s.roughs, last[:])
	}
	return all && stay > 0
}

// mostStay is how many keys mend looks at in vain.
const mostStay = 8

// mendEach does so for the holders of a key, and reports whether none of them has a rounded row any more.
func (s *Shard) mendEach(out Out, k godwit.Key, all bool) bool {
	ref, ok := s.st.Find(k)
	if !ok {
		return true
	}
	h := s.st.Header(ref)
	if !mayBeHeld(h) {
		return true // it moved away: the new owner sends its holders whole rows
	}
	m := s.side(h).main()
	done := true
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		switch {
		case !x.is(rough):
		case !all && s.rests(out, x):
			s.park(k, m)
		case !all && s.crowded(out, x.node) || !out.Room(x.node):
			done = false
		default:
			s.freshen(out, h, ref, x, true)
		}
	}
	if !done {
		return false
	}
	m.rough = false
	s.tidy(h)
	return true
}
