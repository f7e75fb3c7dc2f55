package bench

import (
	"context"
	"math"
	"testing"
)

func TestAFitFindsTheFactorsBehindFigures(t *testing.T) {
	want := []float64{20_000, 150, 0.25}
	f := &fit{}
	for _, keys := range []float64{1, 10, 100, 1000} {
		for _, bytes := range []float64{16, 400, 2048} {
			f.add(2*want[0]+2*keys*want[1]+2*keys*bytes*want[2], 2, 2*keys, 2*keys*bytes)
		}
	}
	for i, x := range f.solve() {
		if math.Abs(x/want[i]-1) > 1e-6 {
			t.Errorf("factor %d is %v, want %v", i, x, want[i])
		}
	}
}

// What would come out below nothing is nothing, and the others make up for it.
func TestAFitHasNoFactorBelowNothing(t *testing.T) {
	f := &fit{}
	for _, n := range []float64{1, 2, 3, 4} {
		f.add(100-5*n, 1, n)
	}
	if x := f.solve(); x[1] != 0 || x[0] < 80 || x[0] > 95 {
		t.Errorf("factors %v, want 80 … 95 and 0", x)
	}
}

func TestCostsThatCannotBeMeantAreRefused(t *testing.T) {
	good := Costs{Key: 50, Byte: 0.1, Frame: 1000, Record: 100}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Costs{{}, {Key: -1, Frame: 1}, {Key: math.NaN()}, {Frame: math.Inf(1)}, {Sample: 1e10}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestTheCostsOfThisMachineAreMeasured(t *testing.T) {
	o := small()
	c, err := Calibrate(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]float64{"an access": c.Key + c.Byte, "an intent": c.Announce, "a batch": c.Load, "a sample": c.Sample, "a message": c.Frame + c.Record + c.FrameByte} {
		if !(x > 0) {
			t.Errorf("%s costs %v ns: %+v", what, x, *c)
		}
	}
	if c.From == "" {
		t.Error("nothing says where the costs are from")
	}
}
