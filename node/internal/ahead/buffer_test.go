package ahead

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// step fetches the even keys up to n for a clock; the value of key k is (k, clock).
func step(b *Buffer, at godwit.Clock, n godwit.Key) *Step {
	s := b.Begin(at)
	for k := godwit.Key(0); k < n; k += 2 {
		s.Add(k, 2, uint64(k)+100, true)
	}
	s.Ready()
	for i, k := range s.Asked {
		s.Values[2*i], s.Values[2*i+1] = float32(k), float32(at)
	}
	return s
}

func TestAValueIsFoundAtItsStepUntilItIsForgotten(t *testing.T) {
	var b Buffer
	if b.Any() {
		t.Error("there is something at the beginning")
	}
	step(&b, 1, 100)
	step(&b, 2, 100)
	for k := godwit.Key(0); k < 100; k++ {
		s, i := b.Find(k, 1)
		if (s != nil) != (k%2 == 0) {
			t.Fatalf("key %d is found: %v", k, s != nil)
		}
		if s == nil {
			continue
		}
		if v, left := s.Value(i), s.Left(i); s.At != 1 || v[0] != float32(k) || v[1] != 1 || left != uint64(k)+100 {
			t.Errorf("key %d is %v of step %d, %d rows had left", k, v, s.At, left)
		}
		if s, i := b.Find(k, 2); s == nil || s.Values[2*i+1] != 2 {
			t.Errorf("at clock 2, the newest value of key %d is not found", k)
		}
	}
	if s, _ := b.Find(0, 0); s != nil {
		t.Error("a value is found before its step")
	}
	b.Forget(4)
	for clock := godwit.Clock(1); clock <= 2; clock++ {
		if s, _ := b.Find(4, clock); s != nil {
			t.Errorf("a forgotten value is found at clock %d", clock)
		}
	}
	var over []godwit.Clock
	b.Over(2, func(s *Step) { over = append(over, s.At) })
	if len(over) != 1 || over[0] != 1 || !b.Any() {
		t.Errorf("steps %v are over at clock 2", over)
	}
	b.Over(godwit.Forever, func(s *Step) { over = append(over, s.At) })
	if len(over) != 2 || b.Any() {
		t.Errorf("steps %v were over at the end", over)
	}
}

// A key that is used in a step before, or in an operation under way, must not be fetched.
func TestWhatIsUnderWayIsKnown(t *testing.T) {
	var b Buffer
	s := b.Begin(1)
	s.Add(1, 1, 0, true)
	s.Add(2, 1, 0, false) // not fetched, but used in the step
	s.Ready()
	keys := []godwit.Key{3}
	complete := false
	b.Under(7, keys, func(godwit.Handle) bool { return complete })
	keys[0] = 9 // they are the caller's
	for range 2 {
		under := b.UnderWay(func(h godwit.Handle) bool { return complete && h == 7 })
		for k := godwit.Key(1); k <= 9; k++ {
			if want := k == 1 || k == 2 || k == 3 && !complete; under(k) != want {
				t.Errorf("key %d is under way: %v (complete: %v)", k, under(k), complete)
			}
		}
		complete = true
	}
	if s, _ := b.Find(2, 1); s != nil {
		t.Error("a value is found that was not fetched")
	}
	if s, _ := b.Find(1, 1); s == nil {
		t.Error("a value is not found that was fetched")
	} else if s.Fail(); s.Handle != 0 {
		t.Error("a failed step waits")
	}
	if s, _ := b.Find(1, 1); s != nil {
		t.Error("a value of a failed step is found")
	}
}

// What a step lacks is asked for when it begins, and not used any more when the worker has waited for an operation.
func TestWhatAStepLacksIsAskedForWhenItBegins(t *testing.T) {
	var b Buffer
	first := b.Begin(1)
	for k := godwit.Key(1); k <= 3; k++ {
		first.Add(k, 1, 0, k == 1) // 2 and 3 are under way
	}
	first.Ready()
	step(&b, 2, 4)
	lacks := b.Lacking(1, nil)
	if !slices.Equal(lacks, []godwit.Key{2, 3}) {
		t.Fatalf("step 1 lacks %v", lacks)
	}
	if lacks := b.Lacking(2, nil); len(lacks) > 0 {
		t.Errorf("step 2 lacks %v", lacks)
	}
	second := b.Begin(1)
	second.now = true
	for _, k := range lacks {
		second.Add(k, 1, 0, true)
	}
	second.Ready()
	b.Forget(3)
	for k, want := range map[godwit.Key]*Step{1: first, 2: second, 3: nil} {
		if s, _ := b.Find(k, 1); s != want {
			t.Errorf("key %d is found at the wrong place", k)
		}
	}
	b.Overtaken()
	for k, want := range map[godwit.Key]*Step{1: first, 2: nil} {
		if s, _ := b.Find(k, 1); s != want {
			t.Errorf("key %d is found at the wrong place after a wait", k)
		}
	}
}

// Against a map, with keys at random.
func TestABufferIsAMap(t *testing.T) {
	seed := *roomtest.Seed
	rng := rand.New(rand.NewPCG(seed, 1))
	var b Buffer
	for clock := godwit.Clock(1); clock < 200; clock++ {
		s, want := b.Begin(clock), map[godwit.Key]int{}
		for range rng.IntN(100) {
			k := godwit.Key(rng.Uint64() >> (10 + rng.IntN(54)))
			if _, twice := want[k]; !twice {
				want[k] = len(s.Asked)
			}
			s.Add(k, 1+int(k%3), 0, true)
		}
		s.Ready()
		for i := range s.Values {
			s.Values[i] = float32(i)
		}
		for k, i := range want {
			f, at := b.Find(k, clock)
			if f != s || s.Asked[at] != k || at != i {
				t.Fatalf("seed %d, clock %d: key %d is at %d, want %d", seed, clock, k, at, i)
			}
			if v := f.Value(at); len(v) != 1+int(k%3) {
				t.Fatalf("seed %d: key %d has %d floats", seed, k, len(v))
			}
		}
		b.Over(clock, func(*Step) {})
	}
	if len(b.free) > 2 {
		t.Errorf("%d steps were made for one at a time", len(b.free))
	}
}

func TestTheDepthFollowsStepsThatAreLateInARow(t *testing.T) {
	var b Buffer
	use := func(n int, late bool) {
		for range n {
			b.Used(b.Begin(1), late)
			b.Over(2, func(*Step) {})
		}
	}
	use(lateSteps-1, true)
	use(1, false) // one that is not late
	use(lateSteps-1, true)
	if b.Depth != 0 {
		t.Errorf("the depth is %d although not all steps were late", b.Depth)
	}
	use(1, true)
	if b.Depth != 1 {
		t.Errorf("the depth is %d after %d late steps", b.Depth, lateSteps)
	}
	use(2*lateSteps, true)
	if b.Depth != 3 {
		t.Errorf("the depth is %d after more late steps, want 3", b.Depth)
	}
	use(earlySteps, false)
	if b.Depth != 2 {
		t.Errorf("the depth is %d after %d early steps, want 2", b.Depth, earlySteps)
	}
	s := b.Begin(1)
	for range lateSteps {
		b.Used(s, true) // several pulls of one step count once
	}
	if b.Depth != 2 {
		t.Errorf("one step made the depth %d", b.Depth)
	}
}

func TestStepsAreLongIfTheShortestOfSomeIs(t *testing.T) {
	const long = int64(1000)
	var p pace
	now, waited := int64(1), int64(0)
	step := func(took, waits int64, fetches bool) (is, ok bool) {
		now, waited = now+took+waits, waited+waits
		at, ok := p.stepped(now, waited, long, fetches)
		return at.Fetches(), ok
	}
	step(0, 0, false)
	if is, ok := step(long, 5000, false); !is || !ok {
		t.Error("the first step does not decide, or is not long")
	}
	for i := range 3 * paceSteps {
		took := 3 * long
		if i%paceSteps == 3 {
			took = []int64{long - 1, long, long - 1}[i/paceSteps]
		}
		is, ok := step(took, 7, i/paceSteps == 2)
		if ok != (i%paceSteps == paceSteps-1) {
			t.Errorf("step %d decides: %v", i, ok)
		}
		if ok && is != (i/paceSteps != 0) {
			t.Errorf("steps up to %d are long: %v", i, is)
		}
	}
	for range paceSteps {
		if is, ok := step(long/2-1, 0, true); ok && is {
			t.Error("steps of less than half are long")
		}
	}
}

// A worker that announces nothing, and so never fetches, notes operations all the same.
func TestOperationsThatAreOverAreForgotten(t *testing.T) {
	var b Buffer
	const open = 500
	for h := godwit.Handle(1); h <= 100_000; h++ {
		b.Under(h, []godwit.Key{godwit.Key(h)}, func(x godwit.Handle) bool { return x+open < h })
	}
	if most := 2*(open+1) + minUnder; len(b.under) > most {
		t.Errorf("%d operations are noted, %d are under way, want at most %d", len(b.under), open, most)
	}
	under := b.UnderWay(func(x godwit.Handle) bool { return x+open < 100_000 })
	if !under(100_000) || !under(100_000-open) || under(100_000-open-1) {
		t.Error("what is under way was forgotten, or what is over was not")
	}
}
