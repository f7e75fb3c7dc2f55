package protocol

import (
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file makes values fewer bytes where bytes bound the network (Out.Strained).

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
// them: nothing is rounded. Differences of wide rows, of which few floats changed, have many.
func omitZeros(r *wire.Record) {
	const enough = 2 // of so many floats, one at the least
	zeros := 0
	for _, x := range r.Vals {
		if math.Float32bits(x) == 0 {
			zeros++
		}
	}
	if zeros > 8 && zeros >= len(r.Vals)/enough {
		r.Coding = wire.Sparse
	}
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
