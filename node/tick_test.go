package node

import (
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Ticks keep their order where the number of their eras begins again, as long as
// they are less than half of all eras apart.
func TestTicksHaveAnOrderWhateverTheNumberOfBarriers(t *testing.T) {
	t.Logf("-seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 0x71c4))
	for range 10_000 {
		barriers := []uint64{rng.Uint64N(8), 1<<23 - 4 + rng.Uint64N(8), 1<<24 - 4 + rng.Uint64N(8), rng.Uint64()}[rng.IntN(4)]
		c := godwit.Clock(rng.Int64N(1 << 38))
		x := tickOf(barriers).at(c)
		if x == 0 || x.clock() != c || x.era() != tickOf(barriers) || x.era().clock() != 0 {
			t.Fatalf("clock %d after %d barriers is the tick %#x: %v", c, barriers, uint64(x), x)
		}
		far := uint64(1 + rng.Int64N(1<<22))
		for what, y := range map[string]tick{
			"the next clock": x + clockUnit, "another clock": tickOf(barriers).at(c + 1 + godwit.Clock(rng.Int64N(1<<38))),
			"the next era": tickOf(barriers + 1), "an era far ahead": tickOf(barriers + far).at(godwit.Clock(rng.Int64N(1 << 38))),
		} {
			if !x.before(y) || y.before(x) || x.before(x) || minTick(x, y) != x || minTick(y, x) != x || maxTick(x, y) != y || maxTick(y, x) != y {
				t.Fatalf("%v after %d barriers is not before %s (%d eras)", x, barriers, what, far)
			}
		}
		back := rng.Int64N(1 << 38)
		if y := x.back(back); y.era() != x.era() || int64(y.clock()) != max(int64(c)-back, 0) {
			t.Fatalf("%d clocks before %v is %v", back, x, y)
		}
		if o := x.oldest(); !o.before(x) || !o.before(tickOf(barriers+1<<22).at(c)) {
			t.Fatalf("the tick that stands for all before %v is not before it", x)
		}
	}
	if top := tickOf(3).at(godwit.Forever); top.clock() != maxClock || !top.before(tickOf(4)) {
		t.Errorf("the last clock of an era is %v", top)
	}
}

func TestWhatIsUnderWayIsKeptInTheOrderOfTicks(t *testing.T) {
	var p pending
	old, fresh := tickOf(1<<24-1).at(5), tickOf(1<<24)
	p.add(uint64(fresh), 1)
	p.add(uint64(old), 2)
	if u, ok := p.first(); !ok || tick(u.at) != old {
		t.Errorf("the oldest is of %v, want %v", tick(u.at), old)
	}
}
