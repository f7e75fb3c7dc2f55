package filter

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

var seedFlag = flag.Uint64("seed", 1, "seed of random inputs")

// batch makes a batch of vectors of dim floats with a copy of them, as nodes do.
func batch(dim int, call uint64, vals []float32) *godwit.FilterBatch {
	b := &godwit.FilterBatch{}
	again(b, dim, call, vals)
	return b
}

func again(b *godwit.FilterBatch, dim int, call uint64, vals []float32) {
	keys := make([]godwit.Key, len(vals)/dim)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	b.Dim, b.Call = dim, call
	b.Reset(keys, slices.Clone(vals), godwit.Hash64(*seedFlag<<32+call))
}

func normal(n int, scale float64, stream uint64) []float32 {
	r := rand.New(rand.NewPCG(*seedFlag, stream))
	vals := make([]float32, n)
	for i := range vals {
		vals[i] = float32(scale * r.NormFloat64())
	}
	return vals
}

// fits reports whether a encoding can write a value.
func fits(f godwit.Encoding, x float32) bool {
	most := 127.0
	switch f.Coding &^ godwit.Sparse {
	case godwit.BFloat16:
		return math.Float32bits(x)&0xffff == 0
	case godwit.Fixed16:
		most = 32767
		fallthrough
	case godwit.Fixed8:
		q := math.RoundToEven(float64(x) / float64(f.Step))
		return math.Abs(q) <= most && math.Float32bits(float32(q)*f.Step) == math.Float32bits(x)
	}
	return true
}

// quantum is how far apart the values of a encoding lie around x.
func quantum(f godwit.Encoding, x float32) float64 {
	if f.Coding == godwit.BFloat16 {
		low := math.Float32frombits(math.Float32bits(x) &^ 0xffff)
		return math.Abs(float64(math.Float32frombits(math.Float32bits(low)+1<<16)) - float64(low))
	}
	return float64(f.Step)
}

var quantizers = []godwit.Quantizer{Fixed{Bytes: 1}, Fixed{Bytes: 2}, Fixed{Bytes: 1, Forget: true}, BF16{}, BF16{Forget: true}}

func TestRoundedValuesLieOnTheGridLessThanAQuantumAway(t *testing.T) {
	for _, f := range quantizers {
		for stream, scale := range []float64{1, 1e-30, 1e-44, 1e37, 1e-6} {
			vals := normal(3000, scale, uint64(stream))
			copy(vals, []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32}[:1+stream%5])
			in := slices.Clone(vals)
			b := batch(10, 0, vals)
			f.Filter(b)
			rounded := slices.Clone(in)
			encoding := f.Quantize(rounded, *seedFlag)
			for j, x := range in {
				if !same(vals[j], x) {
					t.Fatalf("%s changed the input at %d: %v was %v", f.Name(), j, vals[j], x)
				}
				for _, y := range []struct {
					to       float32
					encoding godwit.Encoding
				}{{b.Vals[j], b.Encoding}, {rounded[j], encoding}} {
					if d := math.Abs(float64(y.to) - float64(x)); !fits(y.encoding, y.to) || !(d <= quantum(y.encoding, x)) || y.to-y.to != 0 {
						t.Fatalf("%s made %v of %v, of a quantum of %v; encoding %+v", f.Name(), y.to, x, quantum(y.encoding, x), y.encoding)
					}
				}
			}
			if scale == 1 && slices.Equal(b.Vals, in) {
				t.Errorf("%s rounded nothing", f.Name())
			}
		}
	}
}

func same(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }

func TestValuesThatAreNoFiniteNumbersStay(t *testing.T) {
	nan := math.Float32frombits(0x7fc12345)
	in := []float32{nan, float32(math.Inf(1)), 1, 0.3, float32(math.Inf(-1)), 0.1}
	for _, f := range quantizers {
		b := batch(2, 0, in)
		f.Filter(b)
		for _, j := range []int{0, 1, 4} {
			if !same(b.Vals[j], in[j]) {
				t.Errorf("%s made %v of %v", f.Name(), b.Vals[j], in[j])
			}
		}
		if fixed, ok := f.(Fixed); ok && b.Encoding.Step != fixed.grid(1).step {
			t.Errorf("%s took step %v, of the largest finite value it is %v", f.Name(), b.Encoding.Step, fixed.grid(1).step)
		}
	}
	for _, f := range quantizers { // nothing to make a step of
		b := batch(1, 0, []float32{0, 0})
		f.Filter(b)
		if b.Vals[0] != 0 || b.Vals[1] != 0 {
			t.Errorf("%s made %v of zeros", f.Name(), b.Vals)
		}
	}
}

func TestConformanceC27RoundingHasNoBias(t *testing.T) {
	const draws = 100_000
	for _, f := range quantizers {
		for _, x := range []float32{0.1234567, -0.77, 0.001, -0.5039} {
			var sum, squares float64
			var q float64
			for i := range draws {
				v := []float32{x, 1, 0, 0, 0, 0, 0, 0} // the largest decides the step
				encoding := f.Quantize(v, *seedFlag<<32+uint64(i))
				e := float64(v[0]) - float64(x)
				sum += e
				squares += e * e
				q = quantum(encoding, x)
			}
			if squares == 0 {
				t.Errorf("%s never rounded %v: the test is vacuous", f.Name(), x)
			}
			if mean, sigma := sum/draws, math.Sqrt(squares)/draws; math.Abs(mean) > 5*sigma {
				t.Errorf("-seed %d: %s: the mean error of %v is %v, that is %.1f standard errors; the quantum is %v", *seedFlag, f.Name(), x, mean, mean/sigma, q)
			}
		}
	}
}

// fed pushes vectors again and again through filters, with feedback, and
// returns the sums of what was pushed, of what was sent, and what is left.
func fed(dim, calls int, fs ...godwit.Filter) (pushed, sent, left []float64, deferred int) {
	const rows = 8
	pushed, sent = make([]float64, rows*dim), make([]float64, rows*dim)
	left = make([]float64, rows*dim)
	b := &godwit.FilterBatch{}
	rest := make([]float32, rows*dim)
	for call := range calls {
		vals := normal(rows*dim, math.Exp(float64(call%5)), uint64(call))
		for j, x := range vals {
			pushed[j] += float64(x)
			vals[j] += rest[j]
		}
		again(b, dim, uint64(call), vals)
		for _, f := range fs {
			f.Filter(b)
		}
		clear(rest)
		for i := range rows {
			copy(rest[i*dim:], b.Residual(i))
			if !b.Sent(i) {
				deferred++
				continue
			}
			for j, x := range b.Vec(i) {
				sent[i*dim+j] += float64(x)
			}
		}
	}
	for j, x := range rest {
		left[j] = float64(x)
	}
	return pushed, sent, left, deferred
}

func TestConformanceC27WithFeedbackTheSumOfWhatArrivesIsTheSumOfWhatWasPushed(t *testing.T) {
	for _, fs := range [][]godwit.Filter{
		{Fixed{Bytes: 1}}, {Fixed{Bytes: 2}}, {BF16{}}, {Significant{Threshold: 5, Decay: 0.01}}, {Skip{P: 0.6}},
		{Significant{Threshold: 3}, Skip{P: 0.3}, Fixed{Bytes: 1}, Sparse{}}, {Fixed{Bytes: 1}, BF16{}}, {Skip{P: 0.5}, BF16{}, Fixed{Bytes: 2}},
	} {
		pushed, sent, left, deferred := fed(4, 1000, fs...)
		apart := 0.0
		for j := range pushed {
			apart = max(apart, math.Abs(pushed[j]-sent[j]))
			if d := math.Abs(pushed[j] - sent[j] - left[j]); d > 1e-3 { // float32 of sums of about 1e3
				t.Errorf("-seed %d: %v: %v was pushed, %v sent and %v is left: %v is lost", *seedFlag, fs, pushed[j], sent[j], left[j], d)
			}
		}
		_, rounds := fs[0].(godwit.Quantizer)
		if apart == 0 || deferred == 0 != rounds && len(fs) == 1 {
			t.Errorf("%v left %v and held back %d: the test is vacuous", fs, apart, deferred)
		}
	}
}

func TestShortVectorsThatTravelAloneHaveNoStepOfTheirOwn(t *testing.T) {
	for n, want := range map[int]godwit.Coding{1: godwit.Raw, 5: godwit.Raw, 6: godwit.Fixed8} {
		v := normal(n, 1, 0)
		if got := (Fixed{Bytes: 1}).Quantize(v, 1).Coding; got != want || (want == godwit.Raw) != slices.Equal(v, normal(n, 1, 0)) {
			t.Errorf("%d floats are rounded to coding %d, want %d", n, got, want)
		}
	}
}

// Where the step is the smallest number that there is, the largest multiple may be much less than a value.
func TestWhatIsBeyondTheLargestMultipleIsLeft(t *testing.T) {
	for _, bytes := range []int{1, 2} {
		f := FixedPoint(bytes)
		for _, part := range []float64{1.2, 1.4, 1.6} {
			x := float32(math.Round(part*f.levels()) * math.SmallestNonzeroFloat32)
			b := batch(2, 0, []float32{x, -x})
			f.Filter(b)
			for j, want := range []float32{x, -x} {
				if got := b.Vals[j] + b.Residual(0)[j]; got != want {
					t.Errorf("%s: %v arrives as %v, and %v is left", f.Name(), want, b.Vals[j], b.Residual(0)[j])
				}
			}
		}
	}
}

func TestForgettingFiltersLeaveNothingAndAreRightInTheMean(t *testing.T) {
	for _, f := range []godwit.Filter{Fixed{Bytes: 1, Forget: true}, BF16{Forget: true}} {
		pushed, sent, left, _ := fed(4, 1000, f)
		for j := range pushed {
			if left[j] != 0 || math.Abs(pushed[j]-sent[j]) > 100 || pushed[j] == sent[j] {
				t.Errorf("%s: %v was pushed, %v sent, %v is left", f.Name(), pushed[j], sent[j], left[j])
			}
		}
	}
}

func TestSignificantSendsWhatMattersAndLessMattersLater(t *testing.T) {
	f := Significant{Threshold: 1, Decay: 1}
	for _, c := range []struct {
		call uint64
		x    float32
		sent bool
	}{{0, 0.9, false}, {0, -1, true}, {1, 0.49, false}, {1, 0.5, true}, {9, 0.11, true}, {9, 0.09, false}, {0, float32(math.NaN()), true}} {
		b := batch(2, c.call, []float32{0, c.x})
		f.Filter(b)
		if b.Sent(0) != c.sent {
			t.Errorf("in call %d, %v is sent: %v, want %v", c.call, c.x, b.Sent(0), c.sent)
		}
	}
}

func TestActiveDropsForGood(t *testing.T) {
	b := batch(1, 0, []float32{1, 2, 3})
	Active{func(k godwit.Key) bool { return k != 1 }}.Filter(b)
	if !b.Sent(0) || b.Sent(1) || !b.Sent(2) || b.Residual(1) != nil || b.Dropped() != 1 {
		t.Errorf("sent %v %v %v, left %v, dropped %d", b.Sent(0), b.Sent(1), b.Sent(2), b.Residual(1), b.Dropped())
	}
}

func TestWhatIsHeldBackOnceIsLeftOnce(t *testing.T) {
	b := batch(1, 0, []float32{0.5})
	for range 3 {
		b.Defer(0)
	}
	Fixed{Bytes: 1}.Filter(b)
	BF16{}.Filter(b)
	b.Round(0, 0, 7)
	if got := b.Residual(0); got[0] != 0.5 || b.Dropped() != 1 {
		t.Errorf("%v is left, %d dropped", got, b.Dropped())
	}
}

func TestNoiseHasItsStandardDeviation(t *testing.T) {
	b := batch(10, 0, make([]float32, 100_000))
	Noise{0.5}.Filter(b)
	var sum, squares float64
	for _, x := range b.Vals {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	n := float64(len(b.Vals))
	if mean, std := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 5*0.5/math.Sqrt(n) || math.Abs(std-0.5) > 0.01 || b.Residual(0) != nil {
		t.Errorf("mean %v, standard deviation %v, left %v", mean, std, b.Residual(0))
	}
}

func TestSparseIsForVectorsWithZeros(t *testing.T) {
	for _, c := range []struct {
		before godwit.Coding
		vals   []float32
		want   godwit.Coding
	}{
		{godwit.Raw, []float32{0, 0, 0, 1}, godwit.Sparse},
		{godwit.Fixed8, []float32{0, 0, 0, 1}, godwit.Fixed8 | godwit.Sparse},
		{godwit.Raw, []float32{1, 2, 3, 4}, godwit.Raw},
		{godwit.Raw, []float32{float32(math.Copysign(0, -1)), 2, 3, 4}, godwit.Raw},
		{godwit.Fixed8, []float32{0, 1, 1, 1, 1, 1, 1, 1}, godwit.Fixed8},
		{godwit.Fixed8, []float32{0, 0, 1, 1, 1, 1, 1, 1}, godwit.Fixed8 | godwit.Sparse},
		{godwit.Fixed16, []float32{0}, godwit.Fixed16 | godwit.Sparse},
		{godwit.Fixed8, []float32{0}, godwit.Fixed8},
	} {
		b := batch(len(c.vals), 0, c.vals)
		b.Encoding.Coding = c.before
		Sparse{}.Filter(b)
		if b.Encoding.Coding != c.want {
			t.Errorf("%v of coding %d: coding %d, want %d", c.vals, c.before, b.Encoding.Coding, c.want)
		}
	}
}

func TestSparseDoesNotCountTheZerosOfVectorsThatStay(t *testing.T) {
	b := batch(4, 0, []float32{1, 2, 3, 4, 0, 0, 0, 0})
	b.Drop(1)
	if (Sparse{}).Filter(b); b.Encoding.Coding != godwit.Raw {
		t.Errorf("a vector without zeros has coding %d, as another one has, which stays", b.Encoding.Coding)
	}
}

func TestPullsAreRoundedIfAnswersAre(t *testing.T) {
	for _, answers := range []bool{false, true} {
		if (Fixed{Bytes: 1, Answers: answers}).QuantizesPulls() != answers || (BF16{Answers: answers}).QuantizesPulls() != answers {
			t.Errorf("answers are rounded: %v, and pulls are not alike", answers)
		}
	}
}

// A filter that rounds has fewer bits written for each value, whatever Sparse decided before: four zeros of 64 values are worth their
// bits where a value takes four bytes, and cost more than they save where it takes one.
func TestSparseBeforeAFilterThatRoundsIsUsedIfItShortensWhatIsRounded(t *testing.T) {
	for _, zeros := range []int{4, 32} {
		vals := normal(64, 1, 0)
		clear(vals[:zeros])
		for _, f := range []godwit.Filter{FixedPoint(1), FixedPoint(2), BF16{}} {
			before, behind := batch(64, 0, vals), batch(64, 0, vals)
			Sparse{}.Filter(before)
			f.Filter(before)
			f.Filter(behind)
			Sparse{}.Filter(behind)
			if before.Encoding != behind.Encoding {
				t.Errorf("%d zeros: the encoding is %v with sparse before %s, %v behind it", zeros, before.Encoding, f.Name(), behind.Encoding)
			}
		}
	}
}

func TestSkipDefersAsManyVectorsAsItsProbabilitySays(t *testing.T) {
	const n = 10_000
	for _, p := range []float64{0.1, 0.5, 0.9} {
		b := batch(1, 0, make([]float32, n))
		Skip{P: p}.Filter(b)
		if share := float64(b.Dropped()) / n; math.Abs(share-p) > 6*math.Sqrt(p*(1-p)/n) {
			t.Errorf("-seed %d: %v of the vectors are deferred, want %v", *seedFlag, share, p)
		}
	}
}

func TestTheSameBatchIsFilteredTheSameWay(t *testing.T) {
	vals := normal(400, 1, 0)
	for _, f := range []godwit.Filter{Fixed{Bytes: 1}, BF16{}, Skip{0.5}, Noise{1}} {
		a, b, c := batch(4, 7, vals), batch(4, 7, vals), batch(4, 8, vals)
		for _, x := range []*godwit.FilterBatch{a, b, c} {
			f.Filter(x)
		}
		if !slices.Equal(a.Vals, b.Vals) || fmt.Sprint(a.Residual(3)) != fmt.Sprint(b.Residual(3)) {
			t.Errorf("%s filtered the same batch in two ways", f.Name())
		}
		if slices.Equal(a.Vals, c.Vals) && a.Dropped() == c.Dropped() {
			t.Errorf("%s filtered different batches with the same random numbers", f.Name())
		}
	}
}

func BenchmarkFilters(b *testing.B) {
	vals := normal(32*64, 1, 0)
	for _, f := range []godwit.Filter{Fixed{Bytes: 1}, Fixed{Bytes: 1, Forget: true}, BF16{}, Significant{Threshold: 3}, Sparse{}} {
		b.Run(f.Name(), func(b *testing.B) {
			x := &godwit.FilterBatch{Dim: 32}
			keys, buf := make([]godwit.Key, 64), make([]float32, len(vals))
			b.SetBytes(int64(4 * len(vals)))
			for b.Loop() {
				copy(buf, vals)
				x.Reset(keys, buf, 1)
				f.Filter(x)
			}
		})
	}
}
