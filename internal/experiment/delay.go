package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// passesMost is how many times as many passes as with no delay a run may need.
const passesMost = 20

var delayColumns = []column{
	{"steps vary", func(r *Row) string {
		if r.Spread == 0 {
			return "real"
		}
		return fmt.Sprintf("±%.0f %%", 100*r.Spread)
	}},
	{"delay", func(r *Row) string { return fmt.Sprint(r.Delay) }},
	{"passes", func(r *Row) string { return fmt.Sprint(r.Passes) }},
	{"to objective", func(r *Row) string {
		switch {
		case r.ToTarget == 0 && r.Diverged:
			return "diverged"
		case r.ToTarget == 0:
			return "not reached"
		}
		return r.ToTarget.Round(100 * time.Microsecond).String()
	}},
	{"speed-up", func(r *Row) string {
		if r.Effective == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", r.Effective)
	}},
	{"a pass", func(r *Row) string { return r.Epoch.Round(10 * time.Microsecond).String() }},
	{"waiting", func(r *Row) string { return fmt.Sprintf("%.1f %%", 100*r.Waiting) }},
	{"MB a pass", func(r *Row) string { return fmt.Sprintf("%.2f", float64(r.SentBytes)/1e6) }},
}

// delay trains by blocks of features, of which some more may be under way each
// time, until the objective is where it is with none under way after some
// passes.
func delay(ctx context.Context, l *Lab, r *Report) error {
	r.columns = delayColumns
	nodes, workers := l.Most, 1
	settings := func(delay int) *task.Linear {
		s := *l.Linear
		s.Solver, s.ByBlocks.Blocks, s.ByBlocks.Delay = task.Blocks, l.Blocks, delay
		s.Generate(l.Exponent, l.Seed)
		return &s
	}
	w, err := l.load(settings(0))
	if err != nil {
		return err
	}
	r.Task = fmt.Sprintf("linear, solver blocks, %d blocks: %s; %s", l.Blocks, w.task.Summary(), l.where(nodes, workers))
	if l.Step == 0 && l.Real == nil {
		l.progress("measuring a step")
		if l.Step, err = l.calibrate(ctx, w); err != nil {
			return err
		}
		l.Step = max(l.Step/time.Duration(nodes), time.Microsecond) // each has its share of the examples
	}
	spreads := l.Spreads
	if l.Real != nil {
		spreads = []float64{0}
	}
	times := Plot{File: "delay-time", Title: "Time to the same objective", X: "delay, in blocks", Y: "s"}
	waits := Plot{File: "delay-waiting", Title: "Workers wait", X: "delay, in blocks", Y: "% of the time"}
	for _, d := range l.Delays {
		times.Ticks, waits.Ticks = append(times.Ticks, fmt.Sprint(d)), append(waits.Ticks, fmt.Sprint(d))
	}
	for _, spread := range spreads {
		rows, err := l.delays(ctx, r, settings, nodes, workers, spread)
		name := "steps vary by " + delayColumns[0].of(&Row{Spread: spread})
		t := Series{Name: name, of: func(r *Row) float64 { return untilReached(r.ToTarget) }}
		w := Series{Name: name, of: func(r *Row) float64 { return 100 * r.Waiting }}
		for _, row := range rows {
			if row != nil {
				r.Rows = append(r.Rows, row)
				t.add(row)
				w.add(row)
			}
		}
		times.Series, waits.Series = append(times.Series, t), append(waits.Series, w)
		if err != nil {
			return err
		}
	}
	r.plots = []Plot{times, waits}
	return nil
}

// untilReached is a time to a target for a plot, in seconds: one that was not reached takes for ever.
func untilReached(d time.Duration) float64 {
	if d == 0 {
		return math.Inf(1)
	}
	return d.Seconds()
}

// delays runs all delays, where steps vary by a share.
func (l *Lab) delays(ctx context.Context, r *Report, settings func(delay int) *task.Linear, nodes, workers int, spread float64) ([]*Row, error) {
	network, err := sim.NetworkNamed("10g")
	if err != nil {
		return nil, err
	}
	compute := l.Compute(workers)
	compute.Spread = spread
	try := func(ctx context.Context, delay, passes int, enough func([]entry) bool) (*Row, error) {
		w, err := l.load(settings(delay))
		if err != nil {
			return nil, err
		}
		o, err := l.run(ctx, &program{what: fmt.Sprintf("steps vary by %v, a delay of %d", spread, delay), work: w, nodes: nodes, workers: workers,
			policy: placement.Adaptive, network: network, compute: compute, epochs: passes + 1, enough: enough})
		if err != nil {
			return nil, err
		}
		return delayRow(o, delay, nodes, workers, spread), nil
	}
	none, err := try(ctx, 0, l.Passes, nil)
	if err == nil && none.Diverged {
		err = fmt.Errorf("experiment: with no delay there is no objective: %w", train.ErrDiverged)
	}
	if err != nil {
		return nil, err
	}
	// The loss of a pass is the objective at its begin. It does not depend on the
	// spread, but for the order of sums.
	r.Objective = none.Curve[l.Passes].Loss
	rows := make([]*Row, len(l.Delays))
	err = l.each(ctx, len(rows), func(ctx context.Context, i int) (err error) {
		if l.Delays[i] == 0 {
			rows[i] = none
			return nil
		}
		rows[i], err = try(ctx, l.Delays[i], passesMost*l.Passes, func(es []entry) bool { return es[len(es)-1].loss <= r.Objective })
		return err
	})
	none.arrive(r.Objective)
	for _, row := range rows {
		if row == nil {
			continue
		}
		if row.arrive(r.Objective); row.ToTarget > 0 {
			row.Effective = float64(none.ToTarget) / float64(row.ToTarget)
		}
	}
	return rows, err
}

// where says on what nodes a program runs.
func (l *Lab) where(nodes, workers int) string {
	kind := "simulated nodes, 10g"
	if l.Real != nil {
		kind = "real nodes on this machine"
	}
	return fmt.Sprintf("%d %s, %d workers each", nodes, kind, workers)
}

// delayRow is what a run came to. The first pass, in which rows come to the
// nodes of those who change them, does not count for means.
func delayRow(o *outcome, delay, nodes, workers int, spread float64) *Row {
	r := &Row{Policy: placement.Adaptive.Name(), Nodes: nodes, Workers: workers, Delay: delay, Spread: spread, Diverged: o.diverged}
	for _, e := range o.epochs {
		r.Curve = append(r.Curve, Point{Seconds: e.elapsed.Seconds(), Loss: e.loss})
	}
	r.Loss = o.epochs[len(o.epochs)-1].loss
	counted := o.epochs[min(1, len(o.epochs)-1):]
	s, took := did(counted)
	r.count(s)
	n := len(counted)
	r.Epoch, r.SentBytes = took/time.Duration(n), s.SentBytes/uint64(n)
	r.Waiting = s.Waited.Seconds() / (took.Seconds() * float64(nodes*workers))
	return r
}

// arrive sets after how many passes an objective was reached, and when.
func (r *Row) arrive(objective float64) {
	for i, p := range r.Curve {
		if p.Loss <= objective && i > 0 {
			r.Passes, r.ToTarget = i, time.Duration(r.Curve[i-1].Seconds*float64(time.Second))
			return
		}
	}
}
