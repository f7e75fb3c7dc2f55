package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// What plots of speed-up show on their vertical axis.
const timesAsFast = "times as fast"

// speedups are two plots, of raw and of effective speed-ups.
func speedups(file, what, x string, bars bool) (plots [2]Plot) {
	for i, kind := range []string{"", "effective"} {
		plots[i] = Plot{File: file, Title: "Speed-up " + what, X: x, Y: timesAsFast, Bars: bars}
		if kind != "" {
			plots[i].File += "-" + kind
			plots[i].Title = "Effective speed-up " + what
		}
	}
	return plots
}

// add adds a row to a series of both plots.
func add(plots *[2]Plot, series int, name string, r *Row) {
	for i, y := range []float64{r.Speedup, r.Effective} {
		p := &plots[i]
		if series == len(p.Series) {
			p.Series = append(p.Series, Series{Name: name})
		}
		p.Series[series].Y = append(p.Series[series].Y, y)
	}
}

func tick(plots *[2]Plot, t string) {
	for i := range plots {
		plots[i].Ticks = append(plots[i].Ticks, t)
	}
}

func scaling(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, err := l.prepare(ctx, r, l.Exponent)
	if err != nil {
		return err
	}
	one, goal, err := l.one(ctx, r, w)
	if err != nil {
		return err
	}
	r.Target = goal
	for _, nw := range nets {
		plots := speedups("scaling-"+nw, "over one node, "+nw, "nodes", false)
		for _, n := range l.Nodes {
			tick(&plots, fmt.Sprint(n))
		}
		for i, pol := range l.policies() {
			for _, n := range l.Nodes {
				row := *one
				row.Network, row.Policy = nw, pol.Name()
				if n == 1 {
					r.Rows = append(r.Rows, &row)
				} else {
					other, err := l.against(ctx, r, one, goal, trial{work: w, network: nw, policy: pol, nodes: n})
					if err != nil {
						return err
					}
					row = *other
				}
				add(&plots, i, pol.Name(), &row)
			}
		}
		r.plots = append(r.plots, plots[:]...)
	}
	return nil
}

func techniques(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, err := l.prepare(ctx, r, l.Exponent)
	if err != nil {
		return err
	}
	one, goal, err := l.one(ctx, r, w)
	if err != nil {
		return err
	}
	r.Target = goal
	r.Rows = append(r.Rows, one)
	var trials []trial
	for _, p := range l.policies() {
		trials = append(trials, trial{policy: p})
	}
	trials = append(trials, trial{policy: placement.AdaptiveReplicateOnly}, trial{policy: placement.AdaptiveMoveOnly},
		trial{name: "adaptive, timing off", policy: placement.Adaptive, eager: true},
		trial{name: "adaptive, no hints", policy: placement.Adaptive, noHints: true})
	for _, nw := range nets {
		plots := speedups("techniques-"+nw, fmt.Sprintf("of %d nodes over one, %s", l.Most, nw), "", true)
		for _, t := range trials {
			t.work, t.network, t.nodes = w, nw, l.Most
			row, err := l.against(ctx, r, one, goal, t)
			if err != nil {
				return err
			}
			tick(&plots, row.Policy)
			add(&plots, 0, "speed-up", row)
		}
		r.plots = append(r.plots, plots[:]...)
	}
	return nil
}

func skew(ctx context.Context, l *Lab, r *Report) error {
	r.columns = append([]column{{"zipf", func(r *Row) string { return fmt.Sprint(r.Zipf) }}}, trained...)
	plots := speedups("skew", fmt.Sprintf("of %d nodes over one, 100g", l.Most), "Zipf exponent", false)
	for _, z := range l.Exponents {
		w, err := l.prepare(ctx, r, z)
		if err != nil {
			return err
		}
		one, goal, err := l.one(ctx, r, w)
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, one)
		tick(&plots, fmt.Sprint(z))
		for i, p := range l.policies() {
			row, err := l.against(ctx, r, one, goal, trial{work: w, network: "100g", policy: p, nodes: l.Most})
			if err != nil {
				return err
			}
			add(&plots, i, p.Name(), row)
		}
	}
	r.plots = plots[:]
	return nil
}

func schemes(ctx context.Context, l *Lab, r *Report) error {
	r.columns = append([]column{{"scheme", func(r *Row) string { return r.Scheme }}}, trained...)
	w, err := l.prepare(ctx, r, l.Exponent)
	if err != nil {
		return err
	}
	if len(w.samplers) == 0 {
		return errors.New("experiment: " + l.Task.Name() + " draws no samples")
	}
	one, goal, err := l.one(ctx, r, w)
	if err != nil {
		return err
	}
	r.Target = goal
	r.Rows = append(r.Rows, one)
	for _, nw := range nets {
		plots := speedups("sampling-"+nw, fmt.Sprintf("of %d nodes over one, %s", l.Most, nw), "", true)
		for _, s := range sampling.Schemes() {
			row, err := l.against(ctx, r, one, goal, trial{work: w.sampledBy(s), network: nw, policy: placement.Adaptive, nodes: l.Most, scheme: s.Name()})
			if err != nil {
				return err
			}
			tick(&plots, s.Name())
			add(&plots, 0, "speed-up", row)
		}
		r.plots = append(r.plots, plots[:]...)
	}
	return nil
}
