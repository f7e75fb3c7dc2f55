package filter

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Significant defers a vector until one of its floats reaches the threshold in
// magnitude: later pushes to the key are added to it (Li et al.,
// "Communication efficient distributed machine learning with the parameter
// server", NIPS 2014). Convergence needs a threshold that shrinks as O(1/t).
type Significant struct {
	// Threshold is the least magnitude that is sent, above 0.
	Threshold float64
	// Decay lowers the threshold: for a worker's call t on a table, counted from 0, it
	// is Threshold / (1 + Decay·t). 0 keeps it constant.
	Decay float64
}

func (f Significant) Name() string {
	return named.Write("significant", named.Param{Key: "threshold", Value: f.Threshold}, named.Param{Key: "decay", Value: f.Decay})
}

// Check returns what is wrong with the settings.
func (f Significant) Check() error {
	if !positive(f.Threshold) || f.Decay != 0 && !positive(f.Decay) {
		return fmt.Errorf("filter significant has threshold %v and decay %v, want a threshold above 0 and a decay of at least 0", f.Threshold, f.Decay)
	}
	return nil
}

// Filter defers small vectors.
func (f Significant) Filter(b *godwit.FilterBatch) {
	least := f.Threshold / (1 + f.Decay*float64(b.Call))
	for i := range b.Keys {
		if b.Sent(i) && !reaches(b.Vec(i), least) {
			b.Defer(i)
		}
	}
}

// reaches reports whether a value has at least the magnitude least, or is NaN.
func reaches(vals []float32, least float64) bool {
	for _, x := range vals {
		if !(math.Abs(float64(x)) < least) {
			return true
		}
	}
	return false
}

// Skip defers vectors at random; they are added to a later push of their key.
type Skip struct {
	// P is the probability of that, between 0 and 1.
	P float64
}

func (f Skip) Name() string { return named.Write("skip", named.Param{Key: "p", Value: f.P}) }

// Check returns what is wrong with the settings.
func (f Skip) Check() error {
	if !(f.P > 0 && f.P < 1) {
		return fmt.Errorf("filter skip defers with probability %v, want one between 0 and 1", f.P)
	}
	return nil
}

// Filter defers vectors at random.
func (f Skip) Filter(b *godwit.FilterBatch) {
	for i := range b.Keys {
		if unit(b.Uint64()) < f.P {
			b.Defer(i)
		}
	}
}

// Noise adds a draw from a normal distribution with mean 0 to each value that
// is sent. It hides the influence of single examples only if pushes are clipped before,
// and if Std fits the clipping.
type Noise struct {
	// Std is the standard deviation of the draws, above 0.
	Std float64
}

func (f Noise) Name() string { return named.Write("noise", named.Param{Key: "std", Value: f.Std}) }

// Check returns what is wrong with the settings.
func (f Noise) Check() error {
	if !positive(f.Std) {
		return fmt.Errorf("filter noise has standard deviation %v, want a number above 0", f.Std)
	}
	return nil
}

// Filter adds noise.
func (f Noise) Filter(b *godwit.FilterBatch) {
	r := rand.New(b)
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		v := b.Vec(i)
		for j := range v {
			v[j] += float32(f.Std * r.NormFloat64())
		}
	}
}

// Active drops the vectors of keys outside a set that a solver supplies: those
// of coordinates that it knows will not change, such as weights that are 0 and
// whose gradient is within the penalty (the KKT filter of Li et al.). They are never
// pushed, so the solver has to check all coordinates again before it stops.
type Active struct {
	// Is reports whether a key is in the set. It may be called by any number of
	// goroutines and must not use the worker.
	Is func(godwit.Key) bool
}

func (Active) Name() string { return "active" }

// Check returns what is wrong with the settings.
func (f Active) Check() error {
	if f.Is == nil {
		return fmt.Errorf("filter active has no function Is")
	}
	return nil
}

// Filter drops the vectors of inactive keys.
func (f Active) Filter(b *godwit.FilterBatch) {
	for i, k := range b.Keys {
		if !f.Is(k) {
			b.Drop(i)
		}
	}
}

// Sparse writes each zero as one bit, and adds one bit to every other value, in whole
// bytes a vector. It loses nothing, and is not used for a batch that it would not
// shorten.
type Sparse struct{}

func (Sparse) Name() string { return "sparse" }

// Filter decides whether it shortens the batch.
func (Sparse) Filter(b *godwit.FilterBatch) {
	zeros, cost := 0, 0
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		cost += (b.Dim + 7) / 8 * 8
		for _, x := range b.Vec(i) {
			if math.Float32bits(x) == 0 {
				zeros++
			}
		}
	}
	if zeros*bitsOf(b.Encoding.Coding) > cost {
		b.Encoding.Coding |= godwit.Sparse
	}
}

// MaxLoss returns LossNone.
func (Sparse) MaxLoss() godwit.Loss { return godwit.LossNone }

// bitsOf returns the bits of a value that is not zero.
func bitsOf(c godwit.Coding) int {
	switch c &^ godwit.Sparse {
	case godwit.BFloat16, godwit.Fixed16:
		return 16
	case godwit.Fixed8:
		return 8
	}
	return 32
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
