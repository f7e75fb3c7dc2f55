package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train/task"
)

// An experiment is one that can be named.
type experiment struct {
	name, about string
	run         func(ctx context.Context, l *Lab, r *Report) error
	real        bool // can be run on real nodes
	seeds       bool // runs its seeds itself
}

var experiments = []experiment{
	{name: "scaling", about: "epoch time and quality by the number of nodes, for every policy and two networks", run: scaling},
	{name: "techniques", about: "adaptive beside every other policy, and with parts of it switched off", run: techniques},
	{name: "timing", about: "what it matters how far ahead intents are signalled", run: timing},
	{name: "skew", about: "every policy, from uniform to very skewed popularity", run: skew},
	{name: "sampling", about: "every scheme of sampling, by time and quality", run: schemes},
	{name: "delay", about: "how many blocks of a batch solver may be under way: time, passes and waiting", run: delay, real: true},
	{name: "filters", about: "bytes sent by a batch solver, a stochastic one and a count, by filter", run: filters},
	{name: "sketch", about: "inserts into a count-min sketch, by nodes and batch size", run: inserts, real: true},
	{name: "best", about: "adaptive, given nothing, beside the best setting of every other policy, every task", run: best, real: true, seeds: true},
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

// A Report is what an experiment measured.
type Report struct {
	Name  string        `json:"name"`
	Task  string        `json:"task"`
	Calls Calls         `json:"calls,omitempty"`
	Step  time.Duration `json:"step_ns"`
	Seed  uint64        `json:"seed"`
	// Seeds is how many runs the rows are medians of.
	Seeds int `json:"seeds"`
	// Costs and Cores are what simulated nodes were charged and had.
	Costs bench.Costs `json:"costs"`
	Cores int         `json:"cores"` // 0: as many as workers
	// Metric is the quality that rows tell, Target what they are timed to: nine
	// tenths of the best of one node's epochs, or, of an error, the best by nine
	// tenths. Each seed has its own, and this one is the first's. Where data differ
	// between rows, Target is 0, and each row is timed to its own.
	Metric        string  `json:"metric,omitempty"`
	LowerIsBetter bool    `json:"lower_is_better,omitempty"`
	Target        float64 `json:"target,omitempty"`
	// Objective is what "delay" times to, an example's, of the first seed.
	Objective float64 `json:"objective,omitempty"`
	// Goal is what "best" times to.
	Goal string `json:"goal,omitempty"`
	Rows []*Row `json:"rows"`

	columns []column
	plots   []Plot
}

// index is the place of an experiment; -1 if there is none of the name.
func index(name string) int {
	return slices.IndexFunc(experiments, func(e experiment) bool { return e.name == name })
}

// Check says why an experiment cannot be run on the lab, as far as that can be known without reading data.
func (l *Lab) Check(name string) error {
	i := index(name)
	if i < 0 {
		return fmt.Errorf("experiment: no experiment %q, there are %s", name, strings.Join(Names(), ", "))
	}
	if err := l.check(); err != nil {
		return err
	}
	if l.Real != nil && !experiments[i].real {
		return fmt.Errorf("experiment: %s is simulated only", name)
	}
	if name == "best" && l.Real != nil && l.Calls == Single {
		return errors.New("experiment: best makes calls of single keys on simulated nodes only")
	}
	if name == "best" && !slices.ContainsFunc(l.policies(), func(p placement.Policy) bool { return base(p) != placement.Adaptive.Name() }) {
		return errors.New("experiment: best sets adaptive beside other policies: name one of them, too")
	}
	if name == "sampling" && !samples(l.Task) {
		return fmt.Errorf("experiment: %s draws no samples", l.Task.Name())
	}
	if name == "best" && l.Data != "" && len(l.sizes) > 1 {
		return fmt.Errorf("experiment: data are of one task: say by which best is to train on those in %q", l.Data)
	}
	if _, ok := l.Task.(task.Generated); name == "skew" && (l.Data != "" || !ok) {
		return fmt.Errorf("experiment: skew generates its data, and cannot use those in %q, nor those of a task that has one kind only", l.Data)
	}
	if l.Data != "" {
		if _, err := os.Stat(l.Data); err != nil {
			return fmt.Errorf("experiment: the data: %w", err)
		}
	}
	return nil
}

// Run runs an experiment. With an error it returns what was measured before.
func Run(ctx context.Context, name string, l Lab) (*Report, error) {
	l.telling = new(sync.Mutex)
	if err := l.Check(name); err != nil {
		return nil, err
	}
	i := index(name)
	if experiments[i].seeds {
		r := &Report{Name: name, Seed: l.Seed, Seeds: max(1, l.Seeds), Step: l.Step, Costs: l.Costs, Cores: l.Cores}
		return r, experiments[i].run(ctx, &l, r)
	}
	var reports []*Report
	for n := range max(1, l.Seeds) {
		one := l
		one.Seed += uint64(n)
		r := &Report{Name: name, Seed: one.Seed, Seeds: 1, Costs: l.Costs, Cores: l.Cores}
		err := experiments[i].run(ctx, &one, r)
		r.Step = one.Step
		if reports = append(reports, r); err != nil {
			return merged(reports), err
		}
		l.Step, l.batchSteps = one.Step, one.batchSteps // are measured once
	}
	return merged(reports), nil
}

// prepare makes the task, and measures its step if that is not given.
func (l *Lab) prepare(ctx context.Context, r *Report, exponent float64) (*work, error) {
	w, err := l.work(exponent)
	if err != nil {
		return nil, err
	}
	if r.Task == "" {
		r.Task, r.Calls = fmt.Sprintf("%s: %s; %s calls, %d workers a node", l.Task.Name(), w.task.Summary(), l.Calls, l.Workers), l.Calls
	}
	if l.Step == 0 {
		l.progress("measuring a step")
		if l.Step, err = l.calibrate(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// one runs one node, which has no use for a network or a policy, and says what
// the others are timed to.
func (l *Lab) one(ctx context.Context, r *Report, w *work) (*Row, float64, error) {
	one, err := l.train(ctx, trial{work: w, network: nets[0], policy: placement.Adaptive, nodes: 1})
	if err != nil {
		return nil, 0, err
	}
	r.Metric, r.LowerIsBetter = one.metric, one.lowerIsBetter
	goal := target(one, r.LowerIsBetter)
	one.reach(goal, r.LowerIsBetter)
	one.compare(one)
	return one, goal, nil
}

// each does n things, several at a time, and returns the first error, after
// which no more are begun.
func (l *Lab) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turns := make(chan int)
	var running sync.WaitGroup
	for range max(1, min(l.Parallel, n)) {
		running.Go(func() {
			for i := range turns {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		turns <- i
	}
	close(turns)
	running.Wait()
	return context.Cause(ctx)
}

// against runs trials and compares them with one node. The rows come in the
// order of the trials; after an error those of the report are what was done.
func (l *Lab) against(ctx context.Context, r *Report, one *Row, goal float64, trials []trial) ([]*Row, error) {
	rows := make([]*Row, len(trials))
	err := l.each(ctx, len(trials), func(ctx context.Context, i int) (err error) {
		rows[i], err = l.train(ctx, trials[i])
		return err
	})
	for _, row := range rows {
		if row != nil {
			row.reach(goal, r.LowerIsBetter)
			row.compare(one)
			r.Rows = append(r.Rows, row)
		}
	}
	return rows, err
}

// policies are those to compare, without ablations.
func (l *Lab) policies() []placement.Policy {
	if l.Policies != nil {
		return l.Policies
	}
	return []placement.Policy{placement.Static, placement.ReplicateAll, placement.Stale, placement.RelocateAll, placement.NonUniform, placement.Adaptive}
}

// nets are the networks that are compared.
var nets = []string{"10g", "100g"}
