package intent

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

var seedFlag = flag.Uint64("seed", 0, "run the random test of this seed only")

// twin is the obvious plan: a list of intents that is searched.
type twin []*twinSpan

type twinSpan struct {
	key        godwit.Key // each intent has its own, so that it can be told
	start, end godwit.Clock
	active     bool
}

func (p *twin) due(clock, window godwit.Clock) (begun []godwit.Key) {
	*p = slices.DeleteFunc(*p, func(s *twinSpan) bool {
		if s.active || s.start-window > clock {
			return false
		}
		if s.end <= clock {
			return true
		}
		s.active = true
		begun = append(begun, s.key)
		return false
	})
	return begun
}

func (p *twin) expire(clock godwit.Clock) (ended []godwit.Key) {
	*p = slices.DeleteFunc(*p, func(s *twinSpan) bool {
		if s.active && s.end <= clock {
			ended = append(ended, s.key)
			return true
		}
		return false
	})
	return ended
}

func (p *twin) next(window, stay godwit.Clock) godwit.Clock {
	next := godwit.Forever
	for _, s := range *p {
		if s.active {
			next = min(next, max(s.end, s.end+stay)) // which may be more than there is
		} else {
			next = min(next, s.start-window)
		}
	}
	return next
}

// eachSeed runs a test of n seeds, or of the one that -seed says.
func eachSeed(t *testing.T, n int, test func(seed uint64) error) {
	t.Helper()
	first := uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		if err := test(seed); err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
	}
}

func TestAPlanBeginsAndEndsEveryIntentInTime(t *testing.T) {
	eachSeed(t, 300, random)
}

func random(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 3))
	var p Plan
	var q twin
	var clock godwit.Clock
	stay := godwit.Clock(rng.IntN(2) * rng.IntN(40))
	for i := range 500 {
		window := godwit.Clock(rng.IntN(30))
		switch rng.IntN(4) {
		case 0, 1:
			start := clock - 5 + godwit.Clock(rng.IntN(60))
			end := start - 1 + godwit.Clock(rng.IntN(12))
			if rng.IntN(20) == 0 {
				end = godwit.Forever
			}
			k := godwit.Key(i)
			p.Add([]godwit.Key{k}, start, end)
			if end > start {
				q = append(q, &twinSpan{key: k, start: start, end: end})
			}
		case 2:
			clock += godwit.Clock(rng.IntN(4))
		case 3:
			collect := func(to *[]godwit.Key) func([]godwit.Key) {
				return func(ks []godwit.Key) { *to = append(*to, ks...) }
			}
			var begun, ended, others []godwit.Key
			p.Begin(clock, window, 1, collect(&begun), collect(&others))
			p.Expire(clock-stay, collect(&ended))
			if len(others) > 0 {
				return fmt.Errorf("at clock %d, %v were held already", clock, others)
			}
			if err := same("begins", clock, begun, q.due(clock, window)); err != nil {
				return err
			}
			if err := same("ends", clock, ended, q.expire(clock-stay)); err != nil {
				return err
			}
			if got, want := p.Next(window, stay), q.next(window, stay); got != want {
				return fmt.Errorf("at clock %d, the plan has something to do at %d, want %d", clock, got, want)
			}
		}
		if p.Keys() != len(q) {
			return fmt.Errorf("at clock %d, the plan holds %d keys, want %d", clock, p.Keys(), len(q))
		}
	}
	return nil
}

// same compares keys in whatever order.
func same(what string, clock godwit.Clock, got, want []godwit.Key) error {
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("at clock %d, the plan %s %v, want %v", clock, what, got, want)
	}
	return nil
}

func TestAnIntentForEverIsActedOnAndNeverEnds(t *testing.T) {
	var p Plan
	p.Add([]godwit.Key{1, 2}, 10, godwit.Forever)
	begun := 0
	p.Begin(0, godwit.Forever, 1, func(ks []godwit.Key) { begun += len(ks) }, none(t))
	p.Expire(1<<60, func([]godwit.Key) { t.Error("an intent for ever ended") })
	if begun != 2 || p.Keys() != 2 {
		t.Errorf("%d keys began, %d are held, want 2 and 2", begun, p.Keys())
	}
}

func none(t *testing.T) func([]godwit.Key) {
	return func(ks []godwit.Key) { t.Errorf("%v were held already", ks) }
}

func TestIntentsOfNothingAreNothing(t *testing.T) {
	var p Plan
	p.Add(nil, 0, 5)
	p.Add([]godwit.Key{1}, 5, 5)
	p.Add([]godwit.Key{1}, 6, 5)
	if p.Keys() != 0 || p.Next(3, 0) != godwit.Forever {
		t.Errorf("%d keys, next at %d", p.Keys(), p.Next(3, 0))
	}
}

func TestAnIntentThatIsTakenOutIsForgotten(t *testing.T) {
	var p Plan
	p.Add([]godwit.Key{1, 2}, 10, 11)
	p.Add([]godwit.Key{3}, 4, 9) // is over
	taken := 0
	p.Due(9, 1, func(ks []godwit.Key, start godwit.Clock) {
		taken++
		if !slices.Equal(ks, []godwit.Key{1, 2}) || start != 10 {
			t.Errorf("%v from %d on, want 1 and 2 from 10 on", ks, start)
		}
	})
	p.Expire(godwit.Forever-1, func([]godwit.Key) { t.Error("it ended") })
	if taken != 1 || p.Keys() != 0 || p.Next(1, 0) != godwit.Forever {
		t.Errorf("%d were taken out, %d keys are held, and there is something to do at %d", taken, p.Keys(), p.Next(1, 0))
	}
}

// Intents that are acted on together hold each of their keys as long as any of them, and hardly
// longer; and nothing else.
func TestIntentsThatAreActedOnTogetherHoldTheirKeysInTime(t *testing.T) {
	eachSeed(t, 100, together)
}

func together(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 4))
	var p Plan
	var said []span
	held, again := map[godwit.Key]bool{}, 0
	window, join := godwit.Clock(rng.IntN(30)), 1+godwit.Clock(rng.IntN(8))
	clock := godwit.Clock(0)
	for step := range 300 {
		for range rng.IntN(3) {
			s := span{start: clock + window + godwit.Clock(rng.IntN(20)), end: 0}
			if s.end = s.start + 1 + godwit.Clock(rng.IntN(2)); rng.IntN(20) == 0 {
				s.end = s.start + 1 + godwit.Clock(rng.IntN(100))
			}
			for range 1 + rng.IntN(5) {
				if k := godwit.Key(rng.IntN(12)); !slices.Contains(s.keys, k) {
					s.keys = append(s.keys, k)
				}
			}
			said = append(said, s)
			p.Add(slices.Clone(s.keys), s.start, s.end)
		}
		if rng.IntN(2) == 0 {
			clock++
		}
		var wrong error
		each := func(what string, was, is bool) func([]godwit.Key) {
			return func(ks []godwit.Key) {
				for _, k := range ks {
					if held[k] != was {
						wrong = fmt.Errorf("step %d: key %d %s, and was held: %v", step, k, what, held[k])
					}
					if held[k] = is; was && is {
						again++
					}
				}
			}
		}
		p.Begin(clock, window, join, each("begins", false, true), each("is held already", true, true))
		p.Expire(clock, each("ends", true, false))
		if wrong != nil {
			return wrong
		}
		for k := range godwit.Key(12) {
			must, may := false, false
			for _, s := range said {
				if !slices.Contains(s.keys, k) {
					continue
				}
				must = must || s.start <= clock+window && clock < s.end
				may = may || s.start <= clock+window+join && clock < s.end+join
			}
			if must && !held[k] || !may && held[k] {
				return fmt.Errorf("step %d, clock %d, window %d, together %d: key %d is held: %v; it must be: %v, it may be: %v", step, clock, window, join, k, held[k], must, may)
			}
		}
		if next := p.Next(window, 0); next <= clock {
			return fmt.Errorf("step %d, clock %d: after all was done there is something to do at clock %d", step, clock, next)
		}
	}
	p.Due(godwit.Forever, 0, func([]godwit.Key, godwit.Clock) {})
	ended := 0
	p.Expire(godwit.Forever, func(ks []godwit.Key) { ended += len(ks) })
	for _, is := range held {
		if is {
			ended--
		}
	}
	if ended != 0 || again == 0 {
		return fmt.Errorf("at the end %d keys more end than are held; %d were held already when they began", ended, again)
	}
	if p.Keys() != 0 {
		return fmt.Errorf("at the end %d keys are held", p.Keys())
	}
	return nil
}

func TestManyStepsWithTheSameKeysAreOneIntent(t *testing.T) {
	var p Plan
	var keys []godwit.Key
	for k := range godwit.Key(1000) {
		keys = append(keys, k*k)
	}
	for at := range godwit.Clock(20) {
		p.Add(slices.Clone(keys), at, at+1)
	}
	begun, again, ended := 0, 0, 0
	count := func(n *int) func([]godwit.Key) {
		return func(ks []godwit.Key) {
			*n++
			slices.Sort(ks)
			if !slices.Equal(ks, keys) {
				t.Errorf("an intent has %d keys, want the %d of each step", len(ks), len(keys))
			}
		}
	}
	p.Begin(0, 9, 5, count(&begun), count(&again))
	if begun != 1 || again != 2 { // 0 … 4, 5 … 9, 10 … 13
		t.Fatalf("steps 0 to 13 began as %d intents, and %d of keys that were held, want 1 and 2", begun, again)
	}
	if p.Keys() != 7*1000 {
		t.Errorf("the plan has %d keys, want those of 6 intents to come, and 1,000 that are held", p.Keys())
	}
	if p.Expire(13, count(&ended)); ended != 0 {
		t.Errorf("at clock 13, the keys of %d intents end, want none: step 13 has them, too", ended)
	}
	if p.Expire(14, count(&ended)); ended != 1 || p.Keys() != 6*1000 {
		t.Errorf("at clock 14, the keys of %d intents have ended and the plan has %d, want 1, and those to come", ended, p.Keys())
	}
}

// What a program announced for many steps with the same keys is not kept for each of them: an intent that begins with few keys that were not held has
// memory for these.
func TestIntentsOfKeysThatAreHeldTakeLittleMemory(t *testing.T) {
	var p Plan
	for i := range godwit.Clock(100) {
		keys := make([]godwit.Key, 1000)
		for j := range keys {
			keys[j] = godwit.Key(j)
		}
		keys[0] += godwit.Key(1000 + i) // one that is new
		p.Add(keys, i, i+1000)
		p.Begin(i, 1, 1, func([]godwit.Key) {}, func([]godwit.Key) {})
	}
	if p.Groups() != 100 {
		t.Fatalf("%d intents have begun, want 100", p.Groups())
	}
	room := 0
	for _, g := range p.active {
		room += cap(g.keys)
	}
	if room > 2*p.Keys() {
		t.Errorf("%d keys are held, in memory for %d", p.Keys(), room)
	}
	ended := 0
	p.Expire(2000, func(keys []godwit.Key) { ended += len(keys) })
	if ended != 1099 || p.Keys() != 0 || p.Groups() != 0 {
		t.Errorf("%d keys ended, want 1099; %d are left, in %d intents", ended, p.Keys(), p.Groups())
	}
}

// A program may say again and again that it uses a key for ever, or read it again and again at one clock (placement.Stale): an intent for keys that
// are held as long already takes no memory.
func TestIntentsOfKeysThatAreHeldAsLongAreNotKept(t *testing.T) {
	var p Plan
	begun, again, ended := 0, 0, 0
	for i := range godwit.Clock(100) {
		p.Add([]godwit.Key{1, 2}, i, godwit.Forever)
		p.Add([]godwit.Key{3}, 0, 101)
		p.Begin(i, 1, 1, func(keys []godwit.Key) { begun += len(keys) }, func(keys []godwit.Key) { again += len(keys) })
	}
	if begun != 3 || again != 3*99 {
		t.Errorf("%d keys begin and %d once more, want 3 and %d", begun, again, 3*99)
	}
	if p.Groups() != 2 || p.Keys() != 3 {
		t.Errorf("%d intents are kept with %d keys, want 2 with 3", p.Groups(), p.Keys())
	}
	p.Expire(101, func(keys []godwit.Key) { ended += len(keys) })
	if ended != 1 || p.Groups() != 1 || p.Keys() != 2 {
		t.Errorf("at clock 101, %d keys have ended, %d intents are kept with %d keys, want 1, 1 with 2", ended, p.Groups(), p.Keys())
	}
}

func TestAnIntentGoesOnForTheKeysThatStay(t *testing.T) {
	var p Plan
	for i := range godwit.Clock(5) { // which end at 2 … 6
		p.Add([]godwit.Key{10 * godwit.Key(i), 10*godwit.Key(i) + 1, 10*godwit.Key(i) + 2}, i, i+2)
	}
	p.Add([]godwit.Key{99}, 50, 60) // has not begun
	p.Begin(0, 10, 1, func([]godwit.Key) {}, none(t))
	var seen []godwit.Key
	p.Sift(4, func(ks []godwit.Key) []godwit.Key {
		seen = append(seen, ks...)
		return slices.DeleteFunc(ks, func(k godwit.Key) bool { return k < 10 || k%10 == 1 })
	})
	if err := same("sifts", 4, seen, []godwit.Key{0, 1, 2, 10, 11, 12, 20, 21, 22}); err != nil {
		t.Error(err)
	}
	if n := p.Keys(); n != 2*2+2*3+1 {
		t.Errorf("%d keys are held, want 11", n)
	}
	var ended []godwit.Key
	end := func(ks []godwit.Key) { ended = append(ended, ks...) }
	if p.Expire(3, end); !slices.Equal(ended, []godwit.Key{10, 12}) {
		t.Errorf("%v end by clock 3, want 10 and 12", ended)
	}
	p.Expire(100, end)
	if err := same("ends", 100, ended, []godwit.Key{10, 12, 20, 22, 30, 31, 32, 40, 41, 42}); err != nil {
		t.Error(err)
	}
}

// A key that a later intent holds is not sifted with an earlier one, and ends with the later one. One of which all intents are over is, whichever has it in its list.
func TestKeysOfLaterStepsStayBehindABarrier(t *testing.T) {
	var p Plan
	p.Add([]godwit.Key{1, 2}, 0, 2)
	p.Add([]godwit.Key{2, 3}, 0, 9)
	p.Add([]godwit.Key{4, 5}, 0, 1)
	p.Begin(0, 0, 1, func([]godwit.Key) {}, func([]godwit.Key) {})
	p.Add([]godwit.Key{4, 5}, 1, 2) // after them, so that they are in the list of the other group
	p.Begin(1, 0, 1, none(t), func([]godwit.Key) {})
	var sifted []godwit.Key
	p.Sift(2, func(ks []godwit.Key) []godwit.Key {
		sifted = append(sifted, ks...)
		return slices.DeleteFunc(ks, func(k godwit.Key) bool { return k != 5 })
	})
	if err := same("sifts", 2, sifted, []godwit.Key{1, 4, 5}); err != nil {
		t.Error(err)
	}
	if p.Keys() != 3 {
		t.Errorf("%d keys are held, want 2, 3 and 5", p.Keys())
	}
	p.Expire(1, func(ks []godwit.Key) { t.Errorf("%v end at clock 1", ks) })
	five := 0
	p.Expire(2, func(ks []godwit.Key) {
		if five++; !slices.Equal(ks, []godwit.Key{5}) {
			t.Errorf("%v end at clock 2, want 5", ks)
		}
	})
	if five != 1 {
		t.Errorf("5 ended %d times", five)
	}
	var ended []godwit.Key
	p.Expire(9, func(ks []godwit.Key) { ended = append(ended, ks...) })
	if err := same("ends", 9, ended, []godwit.Key{2, 3}); err != nil || p.Keys() != 0 {
		t.Errorf("%v; %d keys are left", err, p.Keys())
	}
}
