package tick

import (
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// Ticks keep their order where the number of their eras begins again, as long as
// they are less than half of all eras apart.
func TestTicksHaveAnOrderWhateverTheNumberOfBarriers(t *testing.T) {
	t.Logf("-seed %d", *roomtest.Seed)
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 0x71c4))
	for range 10_000 {
		barriers := []uint64{rng.Uint64N(8), 1<<23 - 4 + rng.Uint64N(8), 1<<24 - 4 + rng.Uint64N(8), rng.Uint64()}[rng.IntN(4)]
		c := godwit.Clock(rng.Int64N(1 << 38))
		x := First(barriers).At(c)
		if x == 0 || x.Clock() != c || x.Era() != First(barriers) || x.Era().Clock() != 0 {
			t.Fatalf("clock %d after %d barriers is the tick %#x: %v", c, barriers, uint64(x), x)
		}
		far := uint64(1 + rng.Int64N(1<<22))
		for what, y := range map[string]Tick{
			"the next clock": x + clockUnit, "another clock": First(barriers).At(c + 1 + godwit.Clock(rng.Int64N(1<<38))),
			"the next era": First(barriers + 1), "an era far ahead": First(barriers + far).At(godwit.Clock(rng.Int64N(1 << 38))),
		} {
			if !x.Before(y) || y.Before(x) || x.Before(x) || Min(x, y) != x || Min(y, x) != x || Max(x, y) != y || Max(y, x) != y {
				t.Fatalf("%v after %d barriers is not before %s (%d eras)", x, barriers, what, far)
			}
		}
		back := rng.Int64N(1 << 38)
		if y := x.Back(back); y.Era() != x.Era() || int64(y.Clock()) != max(int64(c)-back, 0) {
			t.Fatalf("%d clocks before %v is %v", back, x, y)
		}
		if o := x.Oldest(); !o.Before(x) || !o.Before(First(barriers+1<<22).At(c)) {
			t.Fatalf("the tick that stands for all before %v is not before it", x)
		}
	}
	if top := First(3).At(godwit.Forever); top.Clock() != maxClock || !top.Before(First(4)) {
		t.Errorf("the last clock of an era is %v", top)
	}
}

func TestWhatIsUnderWayIsKeptInTheOrderOfTicks(t *testing.T) {
	var p Pending[Tick]
	old, fresh := First(1<<24-1).At(5), First(1<<24)
	p.Add(fresh, 1)
	p.Add(old, 2)
	p.Add(fresh, 3)
	if u, ok := p.First(); !ok || u.At != old || u.Key != 2 {
		t.Errorf("the oldest is key %d of %v, want key 2 of %v", u.Key, u.At, old)
	}
	p.Remove(old)
	for left := 2; left > 0; left-- {
		if u, ok := p.First(); !ok || u.At != fresh || u.Key != 1 {
			t.Errorf("with %d under way, the oldest is key %d of %v: %v", left, u.Key, u.At, ok)
		}
		p.Remove(fresh)
	}
	if u, ok := p.First(); ok {
		t.Errorf("when nothing is under way, the oldest is of %v", u.At)
	}
}

func TestTicksOfNearErasAreNear(t *testing.T) {
	for _, barriers := range []uint64{0, 10, 1<<24 - 1} { // eras are counted modulo 2²⁴
		for apart, near := range map[uint64]bool{0: true, 4: true, 5: false, 1 << 22: false} {
			a, b := First(barriers).At(7), First(barriers+apart).At(3)
			if a.Near(b) != near || b.Near(a) != near {
				t.Errorf("%v and %v, %d barriers apart: near %v and %v", a, b, apart, a.Near(b), b.Near(a))
			}
		}
	}
}
