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

func TestAPlanBeginsAndEndsEveryIntentInTime(t *testing.T) {
	first, n := uint64(1), 300
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		if err := random(seed); err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
	}
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
			var begun, ended []godwit.Key
			p.Due(clock, window, func(ks []godwit.Key, start godwit.Clock) bool {
				collect(&begun)(ks)
				return start <= clock+window
			})
			p.Expire(clock-stay, collect(&ended))
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
	p.Due(0, godwit.Forever, func(ks []godwit.Key, start godwit.Clock) bool {
		if begun += len(ks); start != 10 {
			t.Errorf("it starts at %d, want 10", start)
		}
		return true
	})
	p.Expire(1<<60, func([]godwit.Key) { t.Error("an intent for ever ended") })
	if begun != 2 || p.Keys() != 2 {
		t.Errorf("%d keys began, %d are held, want 2 and 2", begun, p.Keys())
	}
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

func TestAnIntentThatIsNotBegunIsForgotten(t *testing.T) {
	var p Plan
	p.Add([]godwit.Key{1, 2}, 10, 11)
	p.Due(9, 1, func([]godwit.Key, godwit.Clock) bool { return false })
	p.Expire(godwit.Forever-1, func([]godwit.Key) { t.Error("it ended") })
	if p.Keys() != 0 || p.Next(1, 0) != godwit.Forever {
		t.Errorf("%d keys are held, and there is something to do at %d", p.Keys(), p.Next(1, 0))
	}
}

// Intents that are acted on together hold each of their keys as long as any of them, and hardly
// longer; and nothing else.
func TestIntentsThatAreActedOnTogetherHoldTheirKeysInTime(t *testing.T) {
	first, n := uint64(1), 100
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		if err := together(seed); err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
	}
}

func together(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 4))
	var p Plan
	var said []span
	held := map[godwit.Key]int{}
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
		p.DueTogether(clock, window, join, func(ks []godwit.Key) {
			for _, k := range ks {
				held[k]++
			}
		})
		p.Expire(clock, func(ks []godwit.Key) {
			for _, k := range ks {
				held[k]--
			}
		})
		for k := range godwit.Key(12) {
			must, may := false, false
			for _, s := range said {
				if !slices.Contains(s.keys, k) {
					continue
				}
				must = must || s.start <= clock+window && clock < s.end
				may = may || s.start <= clock+window+join && clock < s.end+join
			}
			if must && held[k] <= 0 || !may && held[k] != 0 || held[k] < 0 {
				return fmt.Errorf("step %d, clock %d, window %d, together %d: key %d is held %d times; it must be held: %v, it may: %v", step, clock, window, join, k, held[k], must, may)
			}
		}
		if next := p.Next(window, 0); next <= clock {
			return fmt.Errorf("step %d, clock %d: after all was done there is something to do at clock %d", step, clock, next)
		}
	}
	p.Due(godwit.Forever, 0, func([]godwit.Key, godwit.Clock) bool { return false })
	p.Expire(godwit.Forever, func([]godwit.Key) {})
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
	var begun [][]godwit.Key
	p.DueTogether(0, 9, 5, func(ks []godwit.Key) { begun = append(begun, slices.Clone(ks)) })
	if len(begun) != 3 { // 0 … 4, 5 … 9, 10 … 13
		t.Fatalf("steps 0 to 13 began as %d intents, want 3", len(begun))
	}
	for _, ks := range begun {
		slices.Sort(ks)
		if !slices.Equal(ks, keys) {
			t.Errorf("an intent has %d keys, want the %d of each step", len(ks), len(keys))
		}
	}
	if p.Keys() != 9*1000 {
		t.Errorf("the plan holds %d keys, want those of 3 intents and 6 to come", p.Keys())
	}
	ended := 0
	p.Expire(5, func([]godwit.Key) { ended++ })
	if ended != 1 {
		t.Errorf("at clock 5, %d intents end, want the first", ended)
	}
}

func TestAnIntentGoesOnForTheKeysThatStay(t *testing.T) {
	var p Plan
	for i := range godwit.Clock(5) { // which end at 2 … 6
		p.Add([]godwit.Key{10 * godwit.Key(i), 10*godwit.Key(i) + 1, 10*godwit.Key(i) + 2}, i, i+2)
	}
	p.Add([]godwit.Key{99}, 50, 60) // has not begun
	p.Due(0, 10, func([]godwit.Key, godwit.Clock) bool { return true })
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
