package optim

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
)

// A rated rule steps as the rule that it is named after, with the rate of each push, and
// leaves the place of the rate alone.
func TestRatedRulesStepByTheRateOfThePush(t *testing.T) {
	const dim = 9
	for _, c := range []struct {
		rated Rated
		plain func(lr float32) godwit.Rule
	}{
		{RatedSGD{}, func(lr float32) godwit.Rule { return SGD{LR: lr} }},
		{RatedAdaGrad{AdaGrad{Init: 0.1}}, func(lr float32) godwit.Rule { return AdaGrad{LR: lr, Init: 0.1} }},
		{RatedRowAdaGrad{RowAdaGrad{Eps: 0.5}}, func(lr float32) godwit.Rule { return RowAdaGrad{LR: lr, Eps: 0.5} }},
		{RatedAdam{Adam{B1: 0.8}}, func(lr float32) godwit.Rule { return Adam{LR: lr, B1: 0.8} }},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		n := c.plain(1).StateLen(dim)
		if got := c.rated.StateLen(dim + 1); got != n {
			t.Errorf("%s has %d floats of state, want %d", c.rated.Name(), got, n)
			continue
		}
		a, b := make([]float32, dim+1), make([]float32, dim)
		as, bs := make([]float32, n), make([]float32, n)
		c.rated.InitState(as)
		c.plain(1).InitState(bs)
		push := make([]float32, dim+1)
		for range 50 {
			for i := range dim {
				push[i] = float32(rng.NormFloat64())
			}
			push[dim] = rng.Float32()
			c.rated.Apply(a, as, push)
			c.plain(push[dim]).Apply(b, bs, push[:dim])
			for i := range b {
				if a[i] != b[i] {
					t.Fatalf("%s: float %d is %v, want %v", c.rated.Name(), i, a[i], b[i])
				}
			}
			if a[dim] != 0 {
				t.Fatalf("%s: the place of the rate is %v", c.rated.Name(), a[dim])
			}
		}
	}
}

// Steps of two copies of a row merge as those of the rule that it is named after.
func TestRatedMergersLeaveThePlaceOfTheRateAlone(t *testing.T) {
	for _, c := range []struct{ rated, plain godwit.Merger }{
		{RatedAdaGrad{}, AdaGrad{LR: 1}}, {RatedRowAdaGrad{}, RowAdaGrad{LR: 1}},
	} {
		state := []float32{4, 9}
		a, b := []float32{1, 2, 0}, []float32{1, 2}
		da, db := []float32{0.5, 0.25, 0}, []float32{0.5, 0.25}
		c.rated.Pack(a, state, da)
		c.plain.Pack(b, state, db)
		c.rated.Merge(a, state, da)
		c.plain.Merge(b, state, db)
		if a[0] != b[0] || a[1] != b[1] || a[2] != 0 || c.rated.Fresh(3) > 3+c.rated.StateLen(3) {
			t.Errorf("%s merges to %v, %s to %v", c.rated.Name(), a, c.plain.Name(), b)
		}
	}
}

// With the rate corrected for the start at zero, SparseAdam makes the steps of Adam, but for
// the place of eps.
func TestSparseAdamWithACorrectedRateIsAdam(t *testing.T) {
	const dim = 5
	rng := rand.New(rand.NewPCG(3, 4))
	sparse, adam := SparseAdam{Eps: 1e-30}, Adam{LR: 0.01, Eps: 1e-30}
	if n := sparse.StateLen(dim + 1); n != 2*dim {
		t.Errorf("%d floats of state, want %d", n, 2*dim)
	}
	a, b := make([]float32, dim+1), make([]float32, dim)
	as, bs := make([]float32, 2*dim), make([]float32, 2*dim+1)
	push := make([]float32, dim+1)
	for s := 1; s <= 200; s++ {
		for i := range dim {
			push[i] = float32(rng.NormFloat64())
		}
		push[dim] = float32(0.01 * math.Sqrt(1-math.Pow(0.999, float64(s))) / (1 - math.Pow(0.9, float64(s))))
		sparse.Apply(a, as, push)
		adam.Apply(b, bs, push[:dim])
	}
	for i := range b {
		if d := math.Abs(float64(a[i] - b[i])); d > 1e-5 {
			t.Errorf("float %d is %v, want %v", i, a[i], b[i])
		}
	}
}

// What pushes bring, and values have, beside their floats is put there and taken away alike, also within one memory.
func TestRatesGoBehindVectorsAndAreTakenAway(t *testing.T) {
	wide := make([]float32, 7)
	if rest := Widen(wide, []float32{1, 2, 3, 4}, 2, 0.5); len(rest) != 1 {
		t.Errorf("%d floats are left, want 1", len(rest))
	}
	if want := []float32{1, 2, 0.5, 3, 4, 0.5, 0}; !slices.Equal(wide, want) {
		t.Errorf("%v, want %v", wide, want)
	}
	if Narrow(wide, wide[:6], 2); !slices.Equal(wide[:4], []float32{1, 2, 3, 4}) {
		t.Errorf("%v without the rates", wide[:4])
	}
	Widen(wide, []float32{7, 8}, 1, 0.5) // of one float, too
	if want := []float32{7, 0.5, 8, 0.5}; !slices.Equal(wide[:4], want) {
		t.Errorf("%v, want %v", wide[:4], want)
	}
	value, plain := []float32{9, 9, 9}, make([]float32, 2)
	u := Unrated{godwit.Uniform{Lo: 1, Hi: 2}}
	u.Init(value, 3, 4)
	u.Of.Init(plain, 3, 4)
	if !slices.Equal(value[:2], plain) || value[2] != 0 {
		t.Errorf("the value begins as %v, want %v and 0", value, plain)
	}
}

// It is the initializer of the other floats that may be wrong, or lack.
func TestAnUnratedInitializerIsCheckedAsTheOtherOneIs(t *testing.T) {
	for _, c := range []struct {
		of   godwit.Init
		want string
	}{{nil, "want one, such as Zero"}, {godwit.Uniform{Lo: 1}, "lo=1"}, {godwit.Uniform{Hi: 1}, ""}, {godwit.Zero{}, ""}} {
		err := Unrated{c.of}.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v", c.of, err)
		}
	}
}

// A rate that was rounded, or added to that of another push, would be another rate.
func TestPushesThatBringTheirRateAreNeverRoundedOrAddedUp(t *testing.T) {
	for _, r := range []Rated{RatedSGD{}, RatedAdaGrad{}, RatedRowAdaGrad{}, RatedAdam{}, SparseAdam{}} {
		table := godwit.Table{Name: "weights", Rows: 1, Dim: 3, Rule: r}
		if _, err := godwit.NewModel(godwit.Table{Name: "rates", Rows: 1, Dim: 1, Rule: r}); err == nil || !strings.Contains(err.Error(), "its rate") {
			t.Errorf("%s takes values that have nothing but a rate: %v", r.Name(), err)
		}
		if table.MayRound() {
			t.Errorf("pushes of %s may be rounded", r.Name())
		}
		for _, f := range []godwit.Filter{filter.BF16{}, filter.Skip{P: 0.5}, filter.Significant{Threshold: 1}} {
			if err := table.CheckFilter(f); err == nil || !strings.Contains(err.Error(), r.Name()) {
				t.Errorf("%s with filter %s: error %v", r.Name(), f.Name(), err)
			}
		}
		for _, f := range []godwit.Filter{filter.Sparse{}, filter.Compress{Method: filter.S2}} {
			if err := table.CheckFilter(f); err != nil {
				t.Error(err)
			}
		}
	}
	if plain := (godwit.Table{Dim: 3, Rule: AdaGrad{LR: 0.1}}); !plain.MayRound() {
		t.Error("gradients without a rate may not be rounded")
	}
}
