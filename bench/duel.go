package bench

import (
	"slices"
	"time"
)

// A Duel is a path and the baselines that it is compared with. Each function
// runs one turn: the same number of units of work.
type Duel struct {
	Units     int    // of work in a turn
	Unit      string // what a unit is, such as "key"
	Path      func() error
	Baselines []Baseline
	Close     func() error
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

// times are the nanoseconds of each turn: of the path, then of each baseline.
type times [][]float64

// A race is a duel in progress.
type race struct {
	programs []func() error
	times    times
}

// start runs a turn of each program that does not count: it finds cold caches
// and small buffers.
func (d *Duel) start() (*race, error) {
	r := &race{programs: []func() error{d.Path}}
	for _, b := range d.Baselines {
		r.programs = append(r.programs, b.Turn)
	}
	r.times = make(times, len(r.programs))
	for _, p := range r.programs {
		if err := p(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// round runs a turn of each. The order changes from round to round, so that
// none always finds the caches as the same other left them.
func (r *race) round() error {
	took := make([]float64, len(r.programs))
	for i := range r.programs {
		j := (i + len(r.times[0])) % len(r.programs)
		t := time.Now()
		if err := r.programs[j](); err != nil {
			return err
		}
		took[j] = float64(time.Since(t))
	}
	for j, d := range took {
		r.times[j] = append(r.times[j], d)
	}
	return nil
}

// ratios returns path over baseline i, turn by turn.
func (t times) ratios(i int) []float64 {
	r := make([]float64, len(t[0]))
	for n := range r {
		r[n] = t[0][n] / t[1+i][n]
	}
	return r
}
