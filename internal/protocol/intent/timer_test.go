package intent

import (
	"math"
	"testing"

	"github.com/godwit-ps/godwit"
)

// exact sums the Poisson distribution until 0.9999 is reached.
func exact(mean float64) godwit.Clock {
	sum := 0.0
	for n := 0; ; n++ {
		lg, _ := math.Lgamma(float64(n) + 1)
		if sum += math.Exp(float64(n)*math.Log(mean) - mean - lg); sum >= 0.9999 {
			return godwit.Clock(n)
		}
	}
}

func TestThePoissonQuantileIsWithinOneOfTheExact(t *testing.T) {
	for mean := 1.0; mean <= 1e4; mean *= 1.07 {
		if got, want := godwit.Clock(math.Ceil(poisson(mean))), exact(mean); got < want || got > want+1 {
			t.Errorf("mean %.2f: %d, the exact quantile is %d", mean, got, want)
		}
	}
}

// steady has a worker tick with a period, be looked at every round and measure
// a lead each time. It returns the last window.
func steady(tm *Timer, from int64, ticks int, period, lead float64) (now int64, window godwit.Clock) {
	clock := tm.rate.clock
	now = from
	for range ticks {
		now += int64(period * 1e9)
		clock++
		tm.Lead(lead)
		window = tm.Observe(now, clock, false)
	}
	return now, window
}

func TestTheWindowCoversTheLeadTimeAndComesNearIt(t *testing.T) {
	for _, c := range []struct{ period, lead float64 }{{1e-3, 5e-3}, {1e-4, 5e-3}, {1e-5, 1e-3}, {1e-2, 5e-3}, {1, 1e-3}} {
		var tm Timer
		tm.Observe(0, 0, false)
		_, w := steady(&tm, 0, 2000, c.period, c.lead)
		ticks := c.lead / c.period
		if least := godwit.Clock(ticks) + 1; w < least {
			t.Errorf("tick %v s, lead %v s: window %d, the lead is %.0f ticks", c.period, c.lead, w, ticks)
		}
		if most := godwit.Clock(ticks + (float64(exact(max(ticks, 1)))-ticks)/4 + 2); w > most {
			t.Errorf("tick %v s, lead %v s: window %d, want at most %d: early is long replication", c.period, c.lead, w, most)
		}
	}
}

func TestAFasterClockWidensTheWindowAndASlowerNarrowsIt(t *testing.T) {
	var tm Timer
	tm.Observe(0, 0, false)
	now, slow := steady(&tm, 0, 500, 1e-3, 5e-3)
	now, fast := steady(&tm, now, 500, 1e-4, 5e-3)
	_, again := steady(&tm, now, 500, 1e-3, 5e-3)
	if fast < 5*slow {
		t.Errorf("a clock ten times as fast has the window %d, it was %d", fast, slow)
	}
	if again > slow+2 {
		t.Errorf("the window is %d when the clock is slow again, it was %d", again, slow)
	}
}

func TestMistakesWidenTheWindowAndTimeWithoutThemNarrowsIt(t *testing.T) {
	var tm Timer
	tm.Observe(0, 0, false)
	now, before := steady(&tm, 0, 500, 1e-3, 5e-3)
	clock := tm.rate.clock
	var w godwit.Clock
	for range 3 {
		now += 1e6
		clock++
		tm.Lead(5e-3)
		w = tm.Observe(now, clock, true)
	}
	if w < 3*before {
		t.Errorf("after three mistakes the window is %d, it was %d", w, before)
	}
	for range 100 {
		now += 1e6
		clock++
		w = tm.Observe(now, clock, true)
	}
	if most := godwit.Clock(poisson(1000 * 5e-3 * maxCare * 1.2)); w > most {
		t.Errorf("mistakes for ever give the window %d, want at most %d", w, most)
	}
	now, w = steady(&tm, now, 300, 1e-3, 5e-3)
	if most := exact(5) + 2; w > most {
		t.Errorf("300 ticks without a mistake later the window is %d, want at most %d", w, most)
	}
	if w <= before {
		t.Errorf("300 ticks without a mistake later the window is %d again, as before the first", w)
	}
	if _, w = steady(&tm, now, 3000, 1e-3, 5e-3); w > before {
		t.Errorf("3000 ticks without a mistake later the window is %d, it was %d", w, before)
	}
}

func TestAWorkerThatDoesNotTickChangesNothing(t *testing.T) {
	var tm Timer
	if tm.Window() != firstWindow || tm.Observe(5, 3, false) != firstWindow {
		t.Errorf("the first window is %d, want %d", tm.Window(), godwit.Clock(firstWindow))
	}
	now, w := steady(&tm, 5, 500, 1e-3, 5e-3)
	for range 1000 {
		now += 1e9
		if got := tm.Observe(now, tm.rate.clock, false); got != w {
			t.Fatalf("the window of an idle worker goes from %d to %d", w, got)
		}
	}
	if tm.Window() != w {
		t.Errorf("Window says %d, Observe said %d", tm.Window(), w)
	}
}

// Until the first tick nothing is known of the speed, and the window stays wide.
func TestTheFirstWindowLastsUntilTheFirstTick(t *testing.T) {
	var tm Timer
	for now := range int64(10) {
		if w := tm.Observe(now*1e6, 0, false); w != firstWindow {
			t.Fatalf("before the first tick the window is %d, want %d", w, firstWindow)
		}
	}
}

// One action in four takes twenty ticks. The window is for these, not for the mean.
func TestTheWindowCoversActionsThatAreSeldomSlow(t *testing.T) {
	var tm Timer
	tm.Observe(0, 0, false)
	least := godwit.Forever
	for i := range int64(1000) {
		lead := 1e-3
		if i%4 == 0 {
			lead = 20e-3
		}
		tm.Lead(lead)
		if w := tm.Observe((i+1)*1e6, godwit.Clock(i+1), false); i > 500 {
			least = min(least, w)
		}
	}
	if least < 14 {
		t.Errorf("the window is %d ticks where an action in four takes 20", least)
	}
}

// A worker begins to fetch with long steps, and goes on until they are half as long.
func TestAWorkerFetchesAheadOfLongStepsUntilTheyAreHalfAsLong(t *testing.T) {
	for _, c := range []struct {
		pace Pace
		want bool
	}{
		{Pace{Long: 1000}, true}, {Pace{Took: 1000, Long: 1000}, true}, {Pace{Took: 999, Long: 1000}, false}, {Pace{Took: 500, Long: 1000, Fetched: true}, true},
		{Pace{Took: 499, Long: 1000, Fetched: true}, false}, {Pace{Took: 5000, Fetched: true}, false},
	} {
		if got := c.pace.Fetches(); got != c.want {
			t.Errorf("%+v fetches: %v", c.pace, got)
		}
	}
}

// The lead time follows slow actions fast and quick ones slowly; trust in it grows more slowly once there was a mistake.
func TestALeadIsForgottenSlowlyAndAMistakeForLong(t *testing.T) {
	tm := Timer{lead: 1e-3}
	tm.Lead(3e-3)
	fast := tm.lead
	tm.Lead(1e-3)
	if math.Abs(fast-2e-3) > 1e-9 || math.Abs(tm.lead-1.95e-3) > 1e-9 {
		t.Errorf("after a slow action the lead is %v, after a quick one %v", fast, tm.lead)
	}
	if tm.Tick() != 0 {
		t.Errorf("a tick takes %v s before there was one", tm.Tick())
	}
	for _, erred := range []bool{false, true} {
		var tm Timer
		tm.Observe(0, 0, false)
		tm.erred = erred
		tm.Observe(1e6, 1, false)
		if want := map[bool]float64{false: trust, true: wisdom}[erred]; tm.care != want {
			t.Errorf("after a tick without a mistake, and one before that: %v: care %v, want %v", erred, tm.care, want)
		}
		if got := tm.Tick(); math.Abs(got-1e-3) > 1e-9 {
			t.Errorf("a tick takes %v s", got)
		}
	}
}
