package linear

import (
	"math"
	"math/rand/v2"
	"testing"
)

// exactAUC compares all pairs.
func exactAUC(pos, neg []float32) float64 {
	right := 0.0
	for _, p := range pos {
		for _, n := range neg {
			switch {
			case p > n:
				right++
			case p == n:
				right += 0.5
			}
		}
	}
	return right / float64(len(pos)*len(neg))
}

func TestTheAreaUnderTheCurveIsThatOfAllPairs(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	for _, shift := range []float64{-2, 0, 0.5, 3, 50} {
		var h histogram
		var pos, neg []float32
		for range 1500 {
			x := float32(r.NormFloat64()*2 + shift)
			pos = append(pos, x)
			h.count(true, x)
			x = float32(r.NormFloat64() * 2)
			neg = append(neg, x)
			h.count(false, x)
		}
		if got, want := h.auc(), exactAUC(pos, neg); math.Abs(got-want) > 1e-4 {
			t.Errorf("positives %v ahead: AUC %v, want %v", shift, got, want)
		}
	}
	var h histogram
	h.count(true, 1)
	if h.auc() != 0.5 {
		t.Errorf("AUC of one class is %v", h.auc())
	}
	h.count(false, 1)
	h.count(false, 1)
	if h.auc() != 0.5 {
		t.Errorf("AUC of equal margins is %v", h.auc())
	}
}

func TestEveryMarginHasABucket(t *testing.T) {
	var h histogram
	for _, m := range []float32{float32(math.NaN()), float32(math.Inf(-1)), -1e9, -16, 15.99999, 16, 1e9, float32(math.Inf(1))} {
		h.count(false, m)
	}
	if h[0][0] != 4 || h[0][buckets-1] != 4 {
		t.Errorf("the outer buckets hold %d and %d, want 4 each", h[0][0], h[0][buckets-1])
	}
}

func TestHistogramsOfNodesAddUp(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	var a, b, both histogram
	for range 3000 {
		y, m := r.IntN(2) == 0, float32(r.NormFloat64()*9)
		if r.IntN(3) == 0 {
			a.count(y, m)
		} else {
			b.count(y, m)
		}
		both.count(y, m)
	}
	var sum histogram
	for _, h := range []*histogram{&a, &b} {
		if err := sum.decode(h.encode()); err != nil {
			t.Fatal(err)
		}
	}
	if sum != both {
		t.Error("what was encoded and added up differs from the whole")
	}
	a.add(&b)
	if a != both {
		t.Error("the sum differs from the whole")
	}
}

// A node's part must fit into an exchange of a megabyte.
func TestTheFullestHistogramIsSmallEnoughToExchange(t *testing.T) {
	var h histogram
	for c := range h {
		for b := range h[c] {
			h[c][b] = 1 << 20
		}
	}
	if n := len(h.encode()); n > 1<<18+1<<14 {
		t.Errorf("%d bytes", n)
	}
}

func FuzzHistogram(f *testing.F) {
	var h histogram
	h.count(true, 0)
	h.count(false, 3)
	f.Add(h.encode())
	f.Add([]byte{255, 255, 3, 1, 1})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var h, again histogram
		if h.decode(in) != nil {
			return
		}
		if err := again.decode(h.encode()); err != nil || again != h {
			t.Fatalf("%v is read, but not again: %v", in, err)
		}
	})
}

func TestCountsThatNoHistogramHasAreRefused(t *testing.T) {
	for what, in := range map[string][]byte{
		"a count of more than 32 bits": {0, 0x80, 0x80, 0x80, 0x80, 0x10, 0},
		"a bucket behind the last":     {0x80, 0x80, 0x02, 1, 1},
		"a part of an entry":           {0, 1},
	} {
		var h histogram
		if h.decode(in) == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
