package intent

import (
	"math"

	"github.com/godwit-ps/godwit"
)

// A Timer learns how far ahead of one worker's clock intents must be acted on.
//
// An intent must be acted on early enough that the key is here when the worker
// arrives: not later than the lead time (from acting to usable) before. Acting
// much earlier keeps a replica in sync longer than needed. AdaPM (Renz-Wieland
// et al., CIKM 2023, section 4.3) estimates clock ticks per synchronisation
// round by exponential smoothing and takes the 0.9999 quantile of a Poisson
// distribution over two rounds. The Timer keeps that idea with two changes:
//
//   - it estimates ticks per unit of time and measures the lead time itself,
//     which includes what the network and the owner really take, and the wait
//     for the next look;
//   - it learns from its mistakes: accesses that found their key still on its
//     way widen the window. Time without any narrows it again, below the
//     quantile too: steps are mostly more regular than Poisson's, and while a
//     replica waits for its use it is refreshed in vain.
//
// Times are in nanoseconds, without most of what the worker waited: else a window that is too short would make steps long by the waits that it causes, and so
// seem to be long enough.
type Timer struct {
	rate   Rate
	lead   float64 // seconds from acting to usable, a high estimate
	care   float64 // what mistakes and their absence taught: above 1 the mean counts so often, below 1 the distance from mean to quantile
	begun  bool
	erred  bool // there was a mistake
	window godwit.Clock
}

// A Rate estimates how fast a worker's clock ticks. Its zero value is ready.
type Rate struct {
	ticks float64 // per second, smoothed; 0: not known
	clock godwit.Clock
	at    int64
	begun bool
}

// Observe tells the worker's clock at a time, in nanoseconds, and returns how
// often it has ticked since it last was seen to have.
func (r *Rate) Observe(now int64, clock godwit.Clock) godwit.Clock {
	if !r.begun {
		*r = Rate{begun: true, clock: clock, at: now}
		return 0
	}
	d, dt := clock-r.clock, float64(now-r.at)/1e9
	if d <= 0 || dt <= 0 {
		return 0 // a worker that did not tick says nothing about its speed
	}
	r.clock, r.at = clock, now
	if x := float64(d) / dt; r.ticks == 0 {
		r.ticks = x
	} else {
		r.ticks += smoothing * (x - r.ticks)
	}
	return d
}

// Tick returns the time between two ticks of the worker's clock, in seconds; 0
// if it is not known.
func (r *Rate) Tick() float64 {
	if r.ticks == 0 {
		return 0
	}
	return 1 / r.ticks
}

const (
	smoothing   = 0.1  // AdaPM's weight of the newest observation
	firstWindow = 39   // AdaPM's window for its first estimate of 10 ticks a round: Poisson(2·10) at 0.9999
	firstLead   = 2e-3 // seconds; replaced by the first measurements
	z           = 3.72 // standard normal quantile of 0.9999
	maxCare     = 64
	minCare     = 1. / 8
	shortLead   = 2e-4 // seconds; about a round trip in a fast network
	forget      = 0.99 // of the lead time, each tick
	// Of the care, each tick without a mistake:
	relax  = 0.98  // while it is above 1,
	trust  = 0.99  // below, as long as there never was a mistake,
	wisdom = 0.999 // and when there was, which bounds how often there is one
)

// Observe tells the timer the worker's clock at a time and returns the new
// window. late says whether, since the last call, an access that had been
// announced found its key still on its way.
func (t *Timer) Observe(now int64, clock godwit.Clock, late bool) godwit.Clock {
	if !t.begun {
		*t = Timer{begun: true, care: 1, lead: firstLead, window: firstWindow}
		t.rate.Observe(now, clock)
		return t.window
	}
	d := float64(t.rate.Observe(now, clock))
	switch {
	case late:
		t.care, t.erred = min(max(2*t.care, 0.5), maxCare), true
	case d > 0 && t.care > 1:
		t.care = max(1, t.care*math.Pow(relax, d))
	case d > 0 && t.erred:
		t.care = max(minCare, t.care*math.Pow(wisdom, d))
	case d > 0:
		t.care = max(minCare, t.care*math.Pow(trust, d))
	}
	if d == 0 {
		return t.window
	}
	// An old measurement counts less and less: the first actions of a run, all
	// at once, take far longer than later ones, and when all is in place there
	// are none to measure. If the window becomes too short, mistakes tell.
	t.lead = max(shortLead, t.lead*math.Pow(forget, d))
	mean := max(t.rate.ticks*t.lead*max(t.care, 1), 1)
	t.window = godwit.Clock(math.Ceil(min(mean+min(t.care, 1)*(poisson(mean)-mean), 1<<40))) + 1
	return t.window
}

// Lead tells the timer how long one action took from acting to usable, and what
// passed until it was acted on.
func (t *Timer) Lead(seconds float64) {
	if seconds > t.lead {
		t.lead += 0.5 * (seconds - t.lead) // fast up,
	} else {
		t.lead += 0.05 * (seconds - t.lead) // slow down: a high quantile
	}
}

// Tick returns the time between two ticks of the worker's clock, in seconds; 0
// if it is not known.
func (t *Timer) Tick() float64 { return t.rate.Tick() }

// Window returns the current window.
func (t *Timer) Window() godwit.Clock {
	if !t.begun {
		return firstWindow
	}
	return t.window
}

// stayWindows is for how many windows keys stay wanted after a step. In this time, a copy that its node does not use is refreshed some
// four times at most, if it changes: after 1, 2, 4 and 4 rounds. Dropping it and setting it up again takes about as many records.
const stayWindows = 4

// Stay returns for how many clocks after a step its keys stay wanted: a key that steps use again and again, with pauses that are longer
// than the window, would be set up and dropped for each of them.
func (t *Timer) Stay() godwit.Clock { return stayWindows * t.Window() }

// poisson returns about the 0.9999 quantile of a Poisson distribution: the
// Cornish-Fisher expansion to second order, which is within one of the exact
// quantile for means from 1.
func poisson(mean float64) float64 {
	return mean + z*math.Sqrt(mean) + (z*z-1)/6
}
