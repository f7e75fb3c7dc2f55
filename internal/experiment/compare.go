package experiment

import (
	"cmp"
	"context"
	"fmt"

	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train/task"
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
	for i, of := range []func(*Row) float64{func(r *Row) float64 { return r.Speedup }, func(r *Row) float64 { return r.Effective }} {
		p := &plots[i]
		if series == len(p.Series) {
			p.Series = append(p.Series, Series{Name: name, of: of})
		}
		p.Series[series].add(r)
	}
}

func tick(plots *[2]Plot, t string) {
	for i := range plots {
		plots[i].Ticks = append(plots[i].Ticks, t)
	}
}

// baseline trains on one node, which is the first row of what is compared with
// it, and returns the work, that row, and what others are to reach.
func (l *Lab) baseline(ctx context.Context, r *Report, exponent float64) (w *work, one *Row, goal float64, err error) {
	if w, err = l.prepare(ctx, r, exponent); err != nil {
		return nil, nil, 0, err
	}
	if one, goal, err = l.one(ctx, r, w); err != nil {
		return nil, nil, 0, err
	}
	r.Rows = append(r.Rows, one)
	return w, one, goal, nil
}

// shared names, beside the policies, one node that has the workers and the cores of all: what so many
// workers reach that need no message. To a quality it may be less than their number, as each computes with what the others
// have not changed yet.
const shared = "shared memory"

func scaling(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, one, goal, err := l.baseline(ctx, r, l.Exponent)
	if err != nil {
		return err
	}
	r.Target = goal
	var trials []trial
	for _, n := range l.Nodes {
		if n > 1 {
			trials = append(trials, trial{work: w, network: nets[0], policy: placement.Adaptive, nodes: n, name: shared, shared: true})
		}
	}
	for _, nw := range nets {
		for _, p := range l.policies() {
			for _, n := range l.Nodes {
				if n > 1 {
					trials = append(trials, trial{work: w, network: nw, policy: p, nodes: n})
				}
			}
		}
	}
	rows, err := l.against(ctx, r, one, goal, trials)
	if err != nil {
		return err
	}
	type place struct {
		network, policy string
		nodes           int
	}
	ran := map[place]*Row{}
	for _, row := range rows {
		ran[place{row.Network, row.Policy, row.Nodes}] = row
	}
	var names []string
	for _, p := range l.policies() {
		names = append(names, p.Name())
	}
	names = append(names, shared)
	r.Rows = nil // they come with one node under each policy, and those that have no use for a network come with each
	for _, nw := range nets {
		plots := speedups("scaling-"+nw, "over one node, "+nw, "nodes", false)
		for _, n := range l.Nodes {
			tick(&plots, fmt.Sprint(n))
		}
		for i, name := range names {
			of := nw
			if name == shared {
				of = nets[0]
			}
			for _, n := range l.Nodes {
				row := *cmp.Or(ran[place{of, name, n}], one)
				row.Network, row.Policy = nw, name
				r.Rows = append(r.Rows, &row)
				add(&plots, i, name, &row)
			}
		}
		r.plots = append(r.plots, plots[:]...)
	}
	return nil
}

func techniques(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, one, goal, err := l.baseline(ctx, r, l.Exponent)
	if err != nil {
		return err
	}
	r.Target = goal
	var kinds []trial
	for _, p := range l.policies() {
		kinds = append(kinds, trial{work: w, policy: p})
	}
	kinds = append(kinds, trial{work: w, policy: placement.AdaptiveReplicateOnly}, trial{work: w, policy: placement.AdaptiveMoveOnly},
		trial{work: w, name: "adaptive, timing off", policy: placement.Adaptive, eager: true},
		trial{work: w, name: "adaptive, no hints", policy: placement.Adaptive, noHints: true})
	return l.bars(ctx, r, one, goal, kinds, func(r *Row) string { return r.Policy })
}

// bars runs kinds of trials on both networks, with a bar for each.
func (l *Lab) bars(ctx context.Context, r *Report, one *Row, goal float64, kinds []trial, name func(*Row) string) error {
	var trials []trial
	for _, nw := range nets {
		for _, t := range kinds {
			t.network, t.nodes = nw, l.Most
			trials = append(trials, t)
		}
	}
	rows, err := l.against(ctx, r, one, goal, trials)
	if err != nil {
		return err
	}
	for _, nw := range nets {
		plots := speedups(r.Name+"-"+nw, fmt.Sprintf("of %d nodes over one, %s", l.Most, nw), "", true)
		for range kinds {
			tick(&plots, name(rows[0]))
			add(&plots, 0, "speed-up", rows[0])
			rows = rows[1:]
		}
		r.plots = append(r.plots, plots[:]...)
	}
	return nil
}

func skew(ctx context.Context, l *Lab, r *Report) error {
	r.columns = append([]column{{"zipf", func(r *Row) string { return fmt.Sprint(r.Zipf) }}}, trained...)
	plots := speedups("skew", fmt.Sprintf("of %d nodes over one, 100g", l.Most), "Zipf exponent", false)
	for _, z := range l.Exponents {
		w, one, goal, err := l.baseline(ctx, r, z)
		if err != nil {
			return err
		}
		tick(&plots, fmt.Sprint(z))
		var trials []trial
		for _, p := range l.policies() {
			trials = append(trials, trial{work: w, network: "100g", policy: p, nodes: l.Most})
		}
		rows, err := l.against(ctx, r, one, goal, trials)
		if err != nil {
			return err
		}
		for i, row := range rows {
			add(&plots, i, row.Policy, row)
		}
	}
	r.plots = plots[:]
	return nil
}

// samples reports whether a task draws samples.
func samples(s task.Settings) bool {
	switch s.(type) {
	case *task.KGE, *task.W2V:
		return true
	}
	return false
}

func schemes(ctx context.Context, l *Lab, r *Report) error {
	r.columns = append([]column{{"scheme", func(r *Row) string { return r.Scheme }}}, trained...)
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
	var kinds []trial
	for _, s := range sampling.Schemes() {
		kinds = append(kinds, trial{work: w.sampledBy(s), policy: placement.Adaptive, scheme: s.Name()})
	}
	return l.bars(ctx, r, one, goal, kinds, func(r *Row) string { return r.Scheme })
}
