package ahead

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// step fetches the even keys up to n for a clock; the value of key k is (k, clock).
func step(b *Buffer, at godwit.Clock, n godwit.Key) *Step {
	s := b.Begin(at, false)
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
	s := b.Begin(1, false)
	s.Add(1, 1, 0, true)
	s.Add(2, 1, 0, false) // not fetched, but used in the step
	s.Ready()
	keys := []godwit.Key{3}
	complete := false
	b.Under(7, keys, false, func(godwit.Handle) bool { return complete })
	keys[0] = 9 // they are the caller's
	for range 2 {
		under := b.UnderWay(func(h godwit.Handle) bool { return complete && h == 7 })
		for k := godwit.Key(1); k <= 9; k++ {
			if want := k == 1 || k == 2 || k == 3 && !complete; (under(k) || b.UsedBefore(k, 2)) != want {
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
	first := b.Begin(1, false)
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
	second := b.Begin(1, false)
	second.now = true
	for _, k := range lacks {
		second.Add(k, 1, 0, true)
	}
	second.Ready()
	b.Forget(3)
	if lacks := b.Lacking(1, nil); !slices.Equal(lacks, []godwit.Key{3}) {
		t.Errorf("with a value forgotten that was asked for twice, step 1 lacks %v", lacks)
	}
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
		s, want := b.Begin(clock, false), map[godwit.Key]int{}
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

// Steps that come and go, of few keys and of thousands: what the buffer says of a key is what the steps have.
func TestABufferKnowsItsStepsKeys(t *testing.T) {
	seed := *roomtest.Seed
	rng := rand.New(rand.NewPCG(seed, 2))
	var b Buffer
	held, most, looked, none := map[godwit.Key]map[godwit.Clock]bool{}, 0, 0, 0
	for clock := godwit.Clock(1); clock < 300; clock++ {
		at, n := clock+godwit.Clock(rng.IntN(20)), 1<<rng.IntN(11)
		s := b.Begin(at, false)
		for range n {
			k := godwit.Key(rng.IntN(20_000))
			s.Add(k, 1, 0, true)
			if held[k] == nil {
				held[k] = map[godwit.Clock]bool{}
			}
			held[k][at] = true
		}
		s.Ready()
		b.Over(clock, func(*Step) {})
		for k, in := range held {
			for at := range in {
				if at < clock {
					delete(in, at)
				}
			}
			if len(in) == 0 {
				delete(held, k)
			}
		}
		most = max(most, len(held))
		for range 300 {
			k := godwit.Key(rng.IntN(40_000))
			in := held[k]
			if used := b.UsedBefore(k, clock); used != (len(in) > 0) {
				t.Fatalf("seed %d, clock %d: key %d is used: %v, want steps %v", seed, clock, k, used, in)
			}
			if s, _ := b.Find(k, clock+30); (s != nil) != (len(in) > 0) {
				t.Fatalf("seed %d, clock %d: key %d is found: %v, want steps %v", seed, clock, k, s != nil, in)
			}
			if len(in) == 0 {
				looked++
				if b.held.steps(k) == 0 {
					none++
				}
				continue
			}
			switch rng.IntN(20) {
			case 0:
				b.Forget(k)
			case 1:
				b.Changes(k)
			default:
				continue
			}
			if s, _ := b.Find(k, clock+30); s != nil {
				t.Fatalf("seed %d, clock %d: key %d is found at %d after it was forgotten", seed, clock, k, s.At)
			}
			s := b.Begin(clock+30, false)
			s.Add(k, 1, 0, true)
			s.Ready()
			held[k][clock+30] = true
		}
	}
	if b.Over(godwit.Forever, func(*Step) {}); b.held.keys != 0 {
		t.Errorf("seed %d: %d keys are held when all steps are over", seed, b.held.keys)
	}
	if most < 3000 || none < looked*3/4 {
		t.Errorf("seed %d: at most %d keys were held; of %d looks for others, one was enough for %d", seed, most, looked, none)
	}
}

// Values are fetched as many steps ahead as fit into the time that they take to come, if that is long for many steps in a row.
func TestTheDepthFollowsStepsThatAreLateInARow(t *testing.T) {
	var b Buffer
	const length = 10
	use := func(n int, late bool, trip int64) {
		for range n {
			s := b.Begin(1, false)
			s.asked = 1000
			s.Came(late, 1000+trip)
			b.Stepped(length, 0)
			b.Over(2, func(*Step) {})
		}
	}
	want := func(what string, own bool, depth godwit.Clock) {
		t.Helper()
		if b.Own != own || b.Depth != depth {
			t.Errorf("%s: the depth is %d (own: %v), want %d (%v)", what, b.Depth, b.Own, depth, own)
		}
	}
	use(lateSteps-1, true, 100)
	use(1, false, 100)
	use(lateSteps-1, true, 100)
	want("not all steps were late", false, 0)
	use(1, true, 100)
	want("all were, of ten steps' time", true, 9)
	b = Buffer{}
	use(4*lateSteps, true, length)
	want("the values take a step", false, 0)
	use(lateSteps-1, true, 10*length)
	use(1, true, length+1)
	want("the shortest takes more than a step", true, 1)
	use(lateSteps, true, length+1)
	want("they are late all the same", true, 2)
	use(earlySteps, false, 0)
	want("they came in time", true, 1)
	use(2*earlySteps, false, 0)
	want("… for long", false, 0)
	use(lateSteps, true, 1000*length)
	want("they take for ever", true, maxDepth)
	for range 2 * lateSteps {
		b.Stepped(length, 0) // what the worker does not use
	}
	s := b.Begin(1, false)
	s.now = true
	for range lateSteps {
		s.Came(true, 1<<40)
		b.Stepped(length, 0)
	}
	want("what a step lacks is late", true, maxDepth)
	b = Buffer{}
	for range 4 {
		use(lateSteps, true, 100)
		b.Stepped(0, 0)
	}
	b = Buffer{}
	for range lateSteps {
		s := b.Begin(1, false)
		s.Came(true, s.asked+1000)
		b.Stepped(0, 0)
		b.Over(2, func(*Step) {})
	}
	want("the length of steps is not known", false, 0)
}

// A worker fetches also what the steps before use when it waited for a good part of many steps in a row.
func TestAWorkerThatWaitsLongAddsItsPushes(t *testing.T) {
	const length = 1000
	var b Buffer
	step := func(n int, waited, length int64, used bool) {
		for range n {
			s := b.Begin(1, false)
			if used {
				s.Came(false, s.asked+1)
			}
			b.Stepped(length, waited)
			b.Over(2, func(*Step) {})
		}
	}
	want := func(what string, own bool) {
		t.Helper()
		if b.Own != own || b.Depth != 0 {
			t.Errorf("%s: the worker adds its pushes: %v, want %v (depth %d)", what, b.Own, own, b.Depth)
		}
		b = Buffer{}
	}
	step(lateSteps-1, length/longWait, length, true)
	step(1, length/longWait-1, length, true)
	step(lateSteps-1, length/longWait, length, true)
	want("a short wait came between", false)
	step(4*lateSteps, length, length, false)
	want("nothing of what was fetched was used", false)
	step(4*lateSteps, length, 0, true)
	want("the length of steps is not known", false)
	step(lateSteps, length/longWait, length, true)
	want("all steps waited", true)
	step(lateSteps, length/longWait, length, true)
	step(2*lateSteps, 0, length, true)
	want("it waits no more, as it adds its pushes", true)
}

// What was asked for when a step began is not used after the worker has waited, unless nothing was under way that might come
// after it.
func TestOnlyValuesInOrderAreNotOvertaken(t *testing.T) {
	for _, firm := range []bool{false, true} {
		b := Buffer{}
		s := b.Begin(1, false)
		s.Add(1, 1, 0, true)
		s.Ready()
		s.now, s.firm = true, firm
		b.Overtaken()
		if gone := s.items[0].gone; gone == firm {
			t.Errorf("a value asked for in order (%v) is gone: %v", firm, gone)
		}
	}
	b := Buffer{Own: true}
	if !b.InOrder() {
		t.Error("nothing is under way, and accesses of a worker that adds its pushes are not in order")
	}
	b.busy = map[godwit.Key]bool{1: true}
	if b.InOrder() {
		t.Error("a key is under way that may be overtaken, and accesses are in order")
	}
	if b = (Buffer{}); b.InOrder() {
		t.Error("requests follow hints, and are in order")
	}
}

// A worker that pushes to a key adds that to the row that it had asked for before, and not to one that it asks for later.
func TestOwnPushesAreAddedToRows(t *testing.T) {
	b := Buffer{Own: true}
	row := func(at godwit.Clock, whole bool) *Step {
		s := b.Begin(at, whole)
		s.Add(1, 1, 0, true)
		s.Ready()
		return s
	}
	push := func(x float32) {
		if !b.Changes(1) {
			return
		}
		p := b.Push()
		p.Add(1, 1, 0, true)
		p.Ready()
		p.Value(0)[0] = x
	}
	pushes := func(s *Step) (xs []float32) {
		b.Pushes(s, 1, func(p []float32) { xs = append(xs, p[0]) })
		return xs
	}
	push(1) // nothing is there
	first := row(1, true)
	push(2)
	second := row(2, true)
	push(3)
	if f, s := pushes(first), pushes(second); !slices.Equal(f, []float32{2, 3}) || !slices.Equal(s, []float32{3}) {
		t.Errorf("to the rows is added %v and %v, want [2 3] and [3]", f, s)
	}
	if s, _ := b.Find(1, 2); s != second {
		t.Error("the newest row is not found")
	}
	b.Replaced(first)
	if s, _ := b.Find(1, 2); s != first {
		t.Error("a row is found that was asked for before what the worker has read")
	}
	value := row(3, false)
	push(4)
	if s, _ := b.Find(1, 3); s == value {
		t.Error("a value is found, to which nothing can be added")
	}
	b.Over(2, func(*Step) {})
	if len(b.pushed) != 2 {
		t.Errorf("%d pushes are kept, want those since the oldest row was asked for", len(b.pushed))
	}
	b.Over(godwit.Forever, func(*Step) {})
	if len(b.pushed) != 0 {
		t.Errorf("%d pushes are kept for nothing", len(b.pushed))
	}
	under := []godwit.Key{1}
	b.Under(1, under, true, func(godwit.Handle) bool { return false })
	if b.UnderWay(func(godwit.Handle) bool { return false })(1) {
		t.Error("a push that keeps its order is in the way")
	}
	b.Own = false
	if !b.UnderWay(func(godwit.Handle) bool { return false })(1) {
		t.Error("a push under way is not in the way")
	}
}

// Pushes are added in their order, however many are of one key, in one call or in many. Those between two times that values are asked for are kept together:
// each read looks for its key in all that are not.
func TestPushesBetweenTwoAsksAreKeptTogether(t *testing.T) {
	type pushed struct {
		k godwit.Key
		x float32
	}
	b, rng := Buffer{Own: true}, rand.New(rand.NewPCG(1, 2))
	var rows []*Step
	var since [][]pushed // by row
	for round := range 5 {
		s := b.Begin(godwit.Clock(round), true)
		for k := range godwit.Key(50) {
			s.Add(k, 1, 0, true)
		}
		s.Ready()
		rows, since = append(rows, s), append(since, nil)
		for range rng.IntN(300) { // calls
			p := b.Push()
			before := len(p.Values)
			for range 1 + rng.IntN(5) {
				x := pushed{godwit.Key(rng.IntN(60)), rng.Float32()}
				p.Add(x.k, 1, 0, true)
				for i := range since {
					since[i] = append(since[i], x)
				}
			}
			p.Ready()
			for i := range p.Values[before:] {
				p.Values[before+i] = since[round][before+i].x
			}
		}
		for i, s := range rows {
			for k := range godwit.Key(60) {
				var got, want []float32
				b.Pushes(s, k, func(p []float32) { got = append(got, p[0]) })
				for _, x := range since[i] {
					if x.k == k {
						want = append(want, x.x)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("after %d rows, to key %d of row %d is added %v, want %v", round+1, k, i, got, want)
				}
			}
		}
	}
	if len(b.pushed) > len(rows) {
		t.Errorf("pushes are kept in %d parts, values were asked for %d times", len(b.pushed), len(rows))
	}
}

// A worker may push without end while its clock stays: beyond some memory, what it pushes to is asked for again.
func TestPushesTakeNoMoreMemoryThanRequests(t *testing.T) {
	f := Fetcher{Config: Config{Ops: &operation.Table{Room: 400}}}
	s := f.values.Begin(1, true)
	s.Add(7, 1, 0, true)
	s.Add(8, 1, 0, true)
	s.Ready()
	p := f.values.Push()
	for range 101 {
		p.Add(7, 1, 0, true)
	}
	p.Ready()
	f.Pushed([]godwit.Key{7}, []int{0, 0}, []float32{1})
	if n := f.values.Noted(); n != 404 {
		t.Errorf("pushes take %d bytes, want those of before, 404", n)
	}
	if s, _ := f.values.Find(7, 1); s != nil {
		t.Error("a row is used to which a push was not added")
	}
	if s, _ := f.values.Find(8, 1); s == nil {
		t.Error("a row is forgotten to which nothing was pushed")
	}
}

// What is asked for again for a step takes the place of what was asked for before, also when a push has it forgotten: the worker may
// have read it.
func TestWhatIsAskedForAgainForAStepReplacesARow(t *testing.T) {
	b := Buffer{Own: true}
	ask := func(whole bool) *Step {
		s := b.Begin(2, whole)
		s.Add(1, 1, 0, true)
		s.Ready()
		b.Replaced(s)
		return s
	}
	ask(true)
	value := ask(false)
	if s, _ := b.Find(1, 2); s != value {
		t.Error("what was asked for last is not found")
	}
	b.Changes(1)
	if s, _ := b.Find(1, 2); s != nil {
		t.Error("a row is found that was asked for before the value that the worker has read")
	}
}

func TestStepsAreLongIfTheShortestOfSomeIs(t *testing.T) {
	const long = int64(1000)
	var p pace
	now, waited := int64(1), int64(0)
	step := func(took, waits int64, fetches bool) (is, ok bool) {
		now, waited = now+took+waits, waited+waits
		ok = p.stepped(now, waited)
		at := paceOf(p.length, long, fetches)
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
		b.Under(h, []godwit.Key{godwit.Key(h)}, false, func(x godwit.Handle) bool { return x+open < h })
	}
	if most := 2*(open+1) + minUnder; len(b.under) > most {
		t.Errorf("%d operations are noted, %d are under way, want at most %d", len(b.under), open, most)
	}
	under := b.UnderWay(func(x godwit.Handle) bool { return x+open < 100_000 })
	if !under(100_000) || !under(100_000-open) || under(100_000-open-1) {
		t.Error("what is under way was forgotten, or what is over was not")
	}
}

// A key that more steps have than a count holds is found in all of them, and changes in all.
func TestAKeyOfVeryManyStepsIsFound(t *testing.T) {
	const k = 7
	for _, steps := range []int{full - 1, full, full + 1, full + 2, 2*full + 5} {
		var b Buffer
		for at := range steps {
			s := b.Begin(godwit.Clock(at), false)
			s.Add(k, 1, 0, true)
			s.Ready()
		}
		if s, _ := b.Find(k, godwit.Clock(steps)); s == nil || s.At != godwit.Clock(steps-1) {
			t.Errorf("a key of %d steps is found in %v, want the last one", steps, s)
		}
		b.Changes(k)
		for at := range steps {
			if s, _ := b.Find(k, godwit.Clock(at)); s != nil {
				t.Errorf("a value of a key of %d steps, which was pushed to, may be used at clock %d", steps, s.At)
			}
		}
		for over := range steps {
			b.Over(godwit.Clock(over+1), func(*Step) {})
			if over+1 < steps && !b.UsedBefore(k, godwit.Clock(steps)) {
				t.Fatalf("after %d of %d steps, no step uses the key", over+1, steps)
			}
		}
	}
}

// Steps that take no time, as in a simulation, are measured all the same.
func TestStepsWithoutLengthAreMeasured(t *testing.T) {
	var p pace
	measured := false
	for range 1 + paceSteps {
		measured = p.stepped(5, 0) || measured
	}
	if !measured || p.length != 1 {
		t.Errorf("measured: %v, length %d", measured, p.length)
	}
}
