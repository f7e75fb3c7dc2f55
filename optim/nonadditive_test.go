package optim

import (
	"math"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

func TestMergedMaxAndMinEqualTheSerialRun(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range []godwit.Rule{Max{}, Min{}} {
		serial, merged := apart(r, warm(r, rnd, 5, 21), whole(rnd, 40, 21))
		if !slices.Equal(serial.value, merged.value) {
			t.Errorf("%s: merged %v, serial %v", r.Name(), merged.value, serial.value)
		}
		base, pushes := newRow(r, float32(math.Inf(-1)), float32(math.Inf(1)), 0), [][]float32{{1, 1, 1}, {-7, 8, -2}}
		serial, merged = apart(r, base, pushes)
		if !slices.Equal(serial.value, merged.value) {
			t.Errorf("%s, from infinity: merged %v, serial %v", r.Name(), merged.value, serial.value)
		}
		sign := float32(1) // of what changes nothing
		if r.Name() == "max" {
			sign = -1
		}
		serial, merged = apart(r, newRow(r, 5*sign, 3), [][]float32{{7 * sign, 3 - sign}, {9 * sign, 3 + sign}})
		if want := []float32{5 * sign, 3 - sign}; !slices.Equal(serial.value, want) || !slices.Equal(merged.value, want) {
			t.Errorf("%s, of a coordinate that nothing changes: merged %v, serial %v, want %v", r.Name(), merged.value, serial.value, want)
		}
	}
}

func TestMaxAndMinKeepTheLargestAndTheSmallestAndNoNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		r    godwit.Rule
		want []float32
	}{{Max{}, []float32{2, 0, 5}}, {Min{}, []float32{0, -3, -1}}} {
		x := newRow(c.r, 0, 0, 0)
		for _, p := range [][]float32{{1, -3, 5}, {nan, nan, nan}, {2, -1, -1}} {
			c.r.Apply(x.value, x.state, p)
		}
		if !slices.Equal(x.value, c.want) {
			t.Errorf("%s: %v, want %v", c.r.Name(), x.value, c.want)
		}
	}
}

func TestMergedRowsOfSetAreOneOfTheLastPushesWhole(t *testing.T) {
	rnd := seedtest.Rand(t)
	for range 50 {
		base, pushes := warm(Set{}, rnd, 3, 5), whole(rnd, 9, 5)
		serial, merged := apart(Set{}, base, pushes)
		if !slices.Equal(serial.value, pushes[8]) {
			t.Fatalf("set to %v, want %v", serial.value, pushes[8])
		}
		if !slices.Equal(merged.value, pushes[7]) { // apart merges the second copy last
			t.Fatalf("merged to %v, want %v", merged.value, pushes[7])
		}
	}
}
