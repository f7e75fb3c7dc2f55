package linear

import (
	"encoding/binary"
	"errors"
)

// The buckets of margins.
const (
	buckets   = 1 << 15
	maxMargin = 16
)

// A histogram counts margins of both classes in buckets of equal width. The
// outer ones take what lies beyond, and NaN is taken as the smallest.
type histogram [2][buckets]uint32

func (h *histogram) count(positive bool, margin float32) {
	class := 0
	if positive {
		class = 1
	}
	b := 0
	if margin >= maxMargin {
		b = buckets - 1
	} else if margin > -maxMargin {
		b = int((margin + maxMargin) * (buckets / (2 * maxMargin)))
	}
	h[class][min(b, buckets-1)]++
}

func (h *histogram) add(o *histogram) {
	for c := range h {
		for b := range h[c] {
			h[c][b] += o[c][b]
		}
	}
}

// auc is the share of pairs of a positive and a negative example whose margins
// are in the right order; pairs in one bucket count half.
func (h *histogram) auc() float64 {
	var right, negatives, positives float64
	for b := range buckets {
		n, p := float64(h[0][b]), float64(h[1][b])
		right += p * (negatives + n/2)
		negatives += n
		positives += p
	}
	if negatives == 0 || positives == 0 {
		return 0.5
	}
	return right / (negatives * positives)
}

// encode writes the buckets that are not empty: how many after the last one,
// and both counts, as varints.
func (h *histogram) encode() []byte {
	var out []byte
	last := -1
	for b := range buckets {
		if h[0][b]|h[1][b] == 0 {
			continue
		}
		out = binary.AppendUvarint(out, uint64(b-last-1))
		out = binary.AppendUvarint(out, uint64(h[0][b]))
		out = binary.AppendUvarint(out, uint64(h[1][b]))
		last = b
	}
	return out
}

var errHistogram = errors.New("the counts of margins are malformed")

// decode adds what encode wrote.
func (h *histogram) decode(in []byte) error {
	next := uint64(0)
	for len(in) > 0 {
		var x [3]uint64
		for i := range x {
			v, n := binary.Uvarint(in)
			if n <= 0 || v >= 1<<32 {
				return errHistogram
			}
			x[i], in = v, in[n:]
		}
		b := next + x[0]
		if b >= buckets {
			return errHistogram
		}
		h[0][b] += uint32(x[1])
		h[1][b] += uint32(x[2])
		next = b + 1
	}
	return nil
}
