package main

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The quantiles are those of tables.
func TestStudentsQuantilesAreThoseOfTables(t *testing.T) {
	for degrees, want := range map[float64]float64{4: 2.776, 9: 2.262, 19: 2.093, 99: 1.984} {
		if got := student(degrees); math.Abs(got-want) > 0.01*want {
			t.Errorf("%v degrees: %.3f, want %.3f", degrees, got, want)
		}
	}
}

// Of many samples of pairs, the interval has the true ratio in about 95 of 100.
func TestTheIntervalHasTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	in, all := 0, 2000
	for range all {
		var ratios []float64
		for range 20 {
			ratios = append(ratios, 1.03*math.Exp(0.1*rng.NormFloat64()))
		}
		if i := intervalOf(ratios); i.low <= 1.03 && 1.03 <= i.high && i.low < i.mean && i.mean < i.high {
			in++
		}
	}
	if in < all*93/100 || in > all*97/100 {
		t.Errorf("%d of %d intervals have the truth", in, all)
	}
}

func TestTheResultOfARunIsRead(t *testing.T) {
	if s, err := epochsIn(strings.NewReader("{\"start\":{}}\n{\"result\":{\"train_seconds\":2.5}}\n")); err != nil || s != 2.5 {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := epochsIn(strings.NewReader("{\"start\":{}}\n")); err == nil {
		t.Error("a run without a result has a time")
	}
}

// Nothing is measured then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := measure(ended, io.Discard, &options{pairs: 3, args: []string{"kge"}})
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
