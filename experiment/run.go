package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/protocol/placement"
)

// An experiment is one that can be named.
type experiment struct {
	name, about string
	run         func(ctx context.Context, l *Lab, r *Report) error
}

var experiments = []experiment{
	{"scaling", "epoch time and quality by the number of nodes, for every policy and two networks", scaling},
	{"techniques", "adaptive beside every other policy, and with parts of it switched off", techniques},
	{"timing", "what it matters how far ahead intents are signalled", timing},
	{"skew", "every policy, from uniform to very skewed popularity", skew},
}

// Names lists the experiments.
func Names() (names []string) {
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// About says in a line what an experiment is; "" if there is none of the name.
func About(name string) string {
	for _, e := range experiments {
		if e.name == name {
			return e.about
		}
	}
	return ""
}

// A Report is what an experiment came to.
type Report struct {
	Name string        `json:"name"`
	Task string        `json:"task"`
	Seed uint64        `json:"seed"`
	Step time.Duration `json:"step_ns"` // of computation
	Rows []*Row        `json:"rows"`

	columns []column
	plots   []Plot
}

// Run runs an experiment. It ends early, with an error, when the context does;
// with an error of a run, the report has the rows that were ready before it.
func Run(ctx context.Context, name string, l Lab) (*Report, error) {
	i := slices.IndexFunc(experiments, func(e experiment) bool { return e.name == name })
	if i < 0 {
		return nil, fmt.Errorf("experiment: no experiment %q, there are %s", name, strings.Join(Names(), ", "))
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if name == "skew" && l.Data != "" {
		return nil, fmt.Errorf("experiment: skew generates its graphs, and cannot use the data in %s", l.Data)
	}
	r := &Report{Name: name, Seed: l.Seed}
	err := experiments[i].run(ctx, &l, r)
	r.Step = l.Step
	return r, err
}

// prepare makes the task and measures its step if that is not given.
func (l *Lab) prepare(ctx context.Context, r *Report, exponent float64) (*work, error) {
	w, err := l.work(exponent)
	if err != nil {
		return nil, err
	}
	if r.Task == "" {
		r.Task = fmt.Sprintf("%s of %d floats, %d triples and %d negatives a step; %s", l.KGE.Model, l.KGE.Dim, l.KGE.Batch, l.KGE.Negatives, w.about)
	}
	if l.Step == 0 {
		if l.Progress != nil {
			l.Progress("measuring a step")
		}
		if l.Step, err = l.calibrate(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// policies are those to compare, without ablations.
func (l *Lab) policies() []placement.Policy {
	if l.Policies != nil {
		return l.Policies
	}
	return []placement.Policy{placement.Static, placement.ReplicateAll, placement.RelocateAll, placement.NonUniform, placement.Adaptive}
}

// nets are the networks that are compared.
var nets = []string{"10g", "100g"}

// against runs a trial on a number of nodes and compares with one node.
func (l *Lab) against(ctx context.Context, one *Row, t trial, exponent float64) (*Row, error) {
	row, err := l.train(ctx, t)
	if err != nil {
		return nil, err
	}
	if l.Data == "" {
		row.Zipf = exponent
	}
	row.Speedup = 1
	if one != nil {
		row.Speedup = float64(one.Epoch) / float64(row.Epoch)
	}
	return row, nil
}

func scaling(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, err := l.prepare(ctx, r, l.Graph.Exponent)
	if err != nil {
		return err
	}
	// One node has no use for a network or a policy.
	one, err := l.against(ctx, nil, trial{work: w, network: nets[0], policy: placement.Adaptive, nodes: 1}, l.Graph.Exponent)
	if err != nil {
		return err
	}
	for _, nw := range nets {
		p := Plot{File: "scaling-" + nw, Title: "Speed-up over one node, " + nw, X: "nodes", Y: "times as fast"}
		for _, n := range l.Nodes {
			p.Ticks = append(p.Ticks, fmt.Sprint(n))
		}
		for _, pol := range l.policies() {
			s := Series{Name: pol.Name()}
			for _, n := range l.Nodes {
				row := one
				if n == 1 {
					same := *one
					same.Network, same.Policy = nw, pol.Name()
					row = &same
				} else if row, err = l.against(ctx, one, trial{work: w, network: nw, policy: pol, nodes: n}, l.Graph.Exponent); err != nil {
					return err
				}
				r.Rows = append(r.Rows, row)
				s.Y = append(s.Y, row.Speedup)
			}
			p.Series = append(p.Series, s)
		}
		r.plots = append(r.plots, p)
	}
	return nil
}

func techniques(ctx context.Context, l *Lab, r *Report) error {
	r.columns = trained
	w, err := l.prepare(ctx, r, l.Graph.Exponent)
	if err != nil {
		return err
	}
	one, err := l.against(ctx, nil, trial{work: w, network: nets[0], policy: placement.Adaptive, nodes: 1}, l.Graph.Exponent)
	if err != nil {
		return err
	}
	r.Rows = append(r.Rows, one)
	for _, nw := range nets {
		var trials []trial
		for _, p := range l.policies() {
			trials = append(trials, trial{policy: p})
		}
		trials = append(trials, trial{policy: placement.AdaptiveReplicateOnly}, trial{policy: placement.AdaptiveMoveOnly},
			trial{name: "adaptive, no hints", policy: placement.Adaptive, noHints: true})
		plot := Plot{File: "techniques-" + nw, Title: fmt.Sprintf("Speed-up of %d nodes over one, %s", l.Most, nw), Y: "times as fast", Bars: true, Series: []Series{{Name: "speed-up"}}}
		for _, t := range trials {
			t.work, t.network, t.nodes = w, nw, l.Most
			row, err := l.against(ctx, one, t, l.Graph.Exponent)
			if err != nil {
				return err
			}
			r.Rows = append(r.Rows, row)
			plot.Ticks = append(plot.Ticks, row.Policy)
			plot.Series[0].Y = append(plot.Series[0].Y, row.Speedup)
		}
		r.plots = append(r.plots, plot)
	}
	return nil
}

func skew(ctx context.Context, l *Lab, r *Report) error {
	r.columns = append([]column{{"zipf", func(r *Row) string { return fmt.Sprint(r.Zipf) }}}, trained...)
	plot := Plot{File: "skew", Title: fmt.Sprintf("Speed-up of %d nodes over one, 100g", l.Most), X: "Zipf exponent", Y: "times as fast"}
	for _, p := range l.policies() {
		plot.Series = append(plot.Series, Series{Name: p.Name()})
	}
	for _, z := range l.Exponents {
		w, err := l.prepare(ctx, r, z)
		if err != nil {
			return err
		}
		one, err := l.against(ctx, nil, trial{work: w, network: "100g", policy: placement.Adaptive, nodes: 1}, z)
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, one)
		plot.Ticks = append(plot.Ticks, fmt.Sprint(z))
		for i, p := range l.policies() {
			row, err := l.against(ctx, one, trial{work: w, network: "100g", policy: p, nodes: l.Most}, z)
			if err != nil {
				return err
			}
			r.Rows = append(r.Rows, row)
			plot.Series[i].Y = append(plot.Series[i].Y, row.Speedup)
		}
	}
	r.plots = []Plot{plot}
	return nil
}
