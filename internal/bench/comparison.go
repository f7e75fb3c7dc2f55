package bench

import (
	"slices"
	"time"
)

// A Comparison is a path and its baselines. Each function runs one turn, which is
// the same number of units of work in all of them.
type Comparison struct {
	Units     int    // of work in a turn
	Unit      string // what a unit is, such as "key"
	Path      func() error
	Baselines []Baseline
	Close     func() error
	// Clock, if set, says how long the last turn took and whether it counts, where
	// the time from its call to its return is not what is meant.
	Clock func() (took time.Duration, counts bool)
	// Ends, if set, says at the end what a case between two processes measured, and
	// allocations are not counted.
	Ends func() *Ends
}

// A Baseline does a turn's work in another way.
type Baseline struct {
	Name string
	Turn func() error
}

// A Spread is the quartiles of what was measured.
type Spread struct {
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
}

func spread(xs []float64) Spread {
	slices.Sort(xs)
	n := len(xs)
	return Spread{xs[n/4], xs[n/2], xs[3*n/4]}
}

// times are the nanoseconds of each turn that counts, 0 for one that does not:
// of the path, then of each baseline.
type times [][]float64

// A measurement is a comparison in progress.
type measurement struct {
	programs []func() error
	clock    func() (time.Duration, bool)
	rounds   int
	times    times
	all      times // as if each turn counted
}

// start runs a turn of each program that does not count: it finds cold caches
// and small buffers.
func (d *Comparison) start() (*measurement, error) {
	r := &measurement{programs: []func() error{d.Path}, clock: d.Clock}
	for _, b := range d.Baselines {
		r.programs = append(r.programs, b.Turn)
	}
	r.times, r.all = make(times, len(r.programs)), make(times, len(r.programs))
	for _, p := range r.programs {
		if err := p(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// round runs a turn of each. The order changes from round to round, so that
// none always finds the caches as the same other left them.
func (r *measurement) round() error {
	for i := range r.programs {
		j := (i + r.rounds) % len(r.programs)
		t := time.Now()
		if err := r.programs[j](); err != nil {
			return err
		}
		took, counts := time.Since(t), true
		if r.clock != nil {
			took, counts = r.clock()
		}
		r.all[j] = append(r.all[j], float64(took))
		if !counts {
			took = 0
		}
		r.times[j] = append(r.times[j], float64(took))
	}
	r.rounds++
	return nil
}

// lacks reports whether any ratio has fewer turns that count than some.
func (r *measurement) lacks(some int) bool {
	for i := range r.programs[1:] {
		if len(r.times.ratios(i)) < some {
			return true
		}
	}
	return false
}

// usable returns the turns that count, or all turns if fewer than least count.
func (r *measurement) usable(least int) times {
	if r.lacks(least) {
		return r.all
	}
	return r.times
}

// counted returns the turns of a program that count.
func (t times) counted(program int) []float64 {
	var c []float64
	for _, x := range t[program] {
		if x > 0 {
			c = append(c, x)
		}
	}
	return c
}

// ratios returns path over baseline i, turn by turn, where both count.
func (t times) ratios(i int) []float64 {
	var r []float64
	for n, path := range t[0] {
		if base := t[1+i][n]; path > 0 && base > 0 {
			r = append(r, path/base)
		}
	}
	return r
}
