package optim

import (
	"testing"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

func TestCountersCountFarBeyondWhatFloatsHold(t *testing.T) {
	rnd := seedtest.Rand(t)
	x := newRow(Counter{}, make([]float32, 6)...)
	var want [3]int64
	for range 100_000 {
		push := make([]float32, 6)
		for i := range want {
			n := rnd.Int64N(1 << 23)
			if i == 2 {
				n = rnd.Int64N(1<<10) - 1<<9 // up and down
			}
			push[2*i] = float32(n)
			want[i] += n
		}
		Counter{}.Apply(x.value, x.state, push)
	}
	for i, n := range want {
		if got := Count(x.value[2*i], x.value[2*i+1]); got != n {
			t.Errorf("counter %d is %d, want %d", i, got, n)
		}
		if low := x.value[2*i]; low < 0 || low >= CounterBase {
			t.Errorf("counter %d has the low part %v", i, low)
		}
	}
}

func TestACounterCarriesWhatMakesAWholeHighFloat(t *testing.T) {
	for _, c := range []struct{ push, low, high float32 }{{CounterBase - 1, CounterBase - 1, 0}, {CounterBase, 0, 1}, {-1, CounterBase - 1, -1}, {-CounterBase, 0, -1}} {
		x := newRow(Counter{}, 0, 0)
		Counter{}.Apply(x.value, x.state, []float32{c.push, 0})
		if x.value[0] != c.low || x.value[1] != c.high {
			t.Errorf("%v counts as %v, want %v and %v", c.push, x.value, c.low, c.high)
		}
	}
}

func TestMergedCountersLoseNothing(t *testing.T) {
	rnd := seedtest.Rand(t)
	base, want := newRow(Counter{}, 0, 0), int64(0)
	for range 200 {
		copies := make([]row, 128)
		for i := range copies {
			copies[i] = base.clone()
			for range rnd.IntN(4) {
				n := rnd.Int64N(1 << rnd.IntN(23))
				Counter{}.Apply(copies[i].value, copies[i].state, []float32{float32(n), 0})
				want += n
			}
		}
		old := base.clone()
		for _, c := range copies {
			base.merge(c, old)
		}
		if got := Count(base.value[0], base.value[1]); got != want {
			t.Fatalf("merged copies count %d, want %d", got, want)
		}
		Counter{}.Apply(base.value, base.state, []float32{0, 0})
		if got := Count(base.value[0], base.value[1]); got != want {
			t.Fatalf("carrying made %d of %d", got, want)
		}
	}
}

func TestCountersArePairsOfFloats(t *testing.T) {
	for dim, ok := range map[int]bool{1: false, 2: true, 63: false, 64: true} {
		if err := (Counter{}).CheckDim(dim); (err == nil) != ok {
			t.Errorf("values of %d floats: %v", dim, err)
		}
	}
}
