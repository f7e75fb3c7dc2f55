package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// behind is from which ratio on adaptive counts as slower than another policy.
const behind = 1.05

// patience is how many times as many epochs as one node a run may need.
const patience = 4

// An Over says how adaptive compares with the best of the other policies at its best setting. The policy is given nothing; its
// program is that of the task's defaults, or the best one.
type Over struct {
	Policy  string `json:"policy"`
	Setting string `json:"setting"`
	// Ratio is adaptive's time to the target over the other's: the median of the
	// seeds', with their Range; 0 where adaptive did not reach it. The least of the Range is 0,
	// too, where it did and the other did not.
	Ratio float64    `json:"ratio"`
	Range [2]float64 `json:"range"`
	// Behind says that it is slower by more than 5 %.
	Behind bool `json:"behind"`
}

// best searches the best setting of each other policy and sets adaptive beside them: with the defaults, and with the best program.
func best(ctx context.Context, l *Lab, r *Report) error {
	r.columns, r.Calls = compared, l.Calls
	r.Goal = fmt.Sprintf("the quality of one node after its last epoch (a row each), worse by %.0f %% at the most; %d epochs of search a policy", 100*tolerance, l.Budget)
	nodes := slices.DeleteFunc(slices.Clone(l.Nodes), func(n int) bool { return n < 2 })
	if len(nodes) == 0 {
		return fmt.Errorf("experiment: best compares several nodes, of %v none are", l.Nodes)
	}
	r.Task = fmt.Sprintf("%s calls, %s", l.Calls, l.where(nodes[len(nodes)-1], l.Workers))
	for _, z := range l.sizes {
		c := &contest{lab: *l, size: z, most: patience * z.epochs, took: map[string]time.Duration{}}
		if z.settings.Epochs() == 1 { // one pass is the whole task
			c.most = 1
		}
		if err := c.run(ctx, r, nodes); err != nil {
			return err
		}
	}
	r.plots = []Plot{overs(r, nodes)}
	return nil
}

// A contest compares policies on one task.
type contest struct {
	lab  Lab
	size size
	most int // epochs to the target, at the most
	// took is what an epoch of a program computes, by the program, and a step by the
	// program and the number of workers.
	took  map[string]time.Duration
	seeds []*heat
}

// A heat is a contest with one seed.
type heat struct {
	lab   Lab
	works map[string]*work // by setting, but for the policy
	course
}

func (c *contest) run(ctx context.Context, r *Report, nodes []int) error {
	var ones []*Row
	for i := range max(1, c.lab.Seeds) {
		h := &heat{lab: c.lab, works: map[string]*work{}}
		h.lab.Seed += uint64(i)
		h.lab.Task, h.lab.Evaluated = c.size.settings, c.size.evaluated
		c.seeds = append(c.seeds, h)
		one, err := c.one(ctx, h)
		if err != nil {
			return err
		}
		ones = append(ones, one)
	}
	first := c.seeds[0].works[defaults]
	r.Task += fmt.Sprintf("; %s: %s", c.size.settings.Name(), first.task.Summary())
	if r.Step == 0 {
		r.Step = ones[0].Step
	}
	r.Rows = append(r.Rows, mergedRow(ones))
	for _, n := range nodes {
		rows, err := c.compare(ctx, n, ones)
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			return err
		}
	}
	return nil
}

// one trains one node with the defaults, which the others are to be as good as.
func (c *contest) one(ctx context.Context, h *heat) (*Row, error) {
	s := setting{policy: placement.Adaptive}
	h.lab.Epochs = c.size.epochs
	if err := c.prepare(ctx, h, s, 1); err != nil {
		return nil, err
	}
	row, err := c.try(ctx, h, s, 1, "one node", nil)
	if err != nil {
		return nil, err
	}
	untrained, err := h.untrained(ctx, h.works[s.String()], row.metric)
	if err != nil {
		return nil, err
	}
	h.course = *newCourse(untrained, row.Curve, row.lowerIsBetter)
	row.reach(h.target, h.lower)
	row.compare(row)
	row.Target = h.target
	return row, nil
}

// untrained is a quality before training.
func (h *heat) untrained(ctx context.Context, w *work, metric string) (quality float64, err error) {
	c, err := sim.New(sim.Config{Nodes: 1, Workers: 1, Seed: h.lab.Seed, Model: w.model, Samplers: w.samplers})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	_, err = c.RunNodes(ctx, func(ctx context.Context, env train.Env) error {
		ms, err := w.task.Test(ctx, &env, "untrained", true)
		for _, m := range ms {
			if m.Name == metric {
				quality = m.Value
			}
		}
		return err
	})
	return quality, err
}

// rivals are the policies that are compared with adaptive: those of every experiment, and the rule of AdaPM's paper.
func (c *contest) rivals() []placement.Policy {
	ps := c.lab.policies()
	if c.lab.Policies == nil {
		ps = append(ps, placement.AdaPM)
	}
	return ps
}

// compare searches the best setting of each policy on so many nodes, with the first
// seed, and then runs them and adaptive with all seeds, in turn. Of adaptive there is nothing to set but the program: it is run with the
// defaults, and with the best program, if that is another one.
func (c *contest) compare(ctx context.Context, nodes int, ones []*Row) ([]*Row, error) {
	finalists := []finalist{{setting: setting{policy: placement.Adaptive}, tried: 1}}
	f, err := c.search(ctx, placement.Adaptive, nodes)
	if err != nil {
		return nil, err
	}
	if f.String() != defaults {
		finalists = append(finalists, f)
	}
	mine := len(finalists)
	for _, p := range c.rivals() {
		if base(p) == placement.Adaptive.Name() {
			continue
		}
		f, err := c.search(ctx, p, nodes)
		if err != nil {
			return nil, err
		}
		finalists = append(finalists, f)
	}
	rows := make([][]*Row, len(finalists)) // by seed
	for i := range rows {
		rows[i] = make([]*Row, len(c.seeds))
	}
	for at, h := range c.seeds {
		h.lab.Epochs = c.most
		for _, f := range finalists {
			if err := c.prepare(ctx, h, f.setting, nodes); err != nil {
				return nil, err
			}
		}
		err := c.lab.each(ctx, len(finalists), func(ctx context.Context, i int) error {
			row, err := c.try(ctx, h, finalists[i].setting, nodes, "final", h.enough)
			if err == nil {
				row.reach(h.target, h.lower)
				row.compare(ones[at])
				row.Tried, row.Target = finalists[i].tried, h.target
				rows[i][at] = row
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	merged := make([]*Row, len(rows))
	for i := range rows {
		merged[i] = mergedRow(rows[i])
	}
	for i := range mine {
		merged[i].Over = over(rows[i], rows[mine:], merged[mine:])
	}
	return merged, nil
}

// A finalist is the best setting of a policy that a search found.
type finalist struct {
	setting
	tried int // settings
}

// search finds the best setting of a policy.
func (c *contest) search(ctx context.Context, p placement.Policy, nodes int) (finalist, error) {
	h := c.seeds[0]
	all := grid(p, c.size.settings, c.lab.Calls, func(s *setting) bool { return !s.ahead || c.lab.Real == nil && c.lab.Calls == Batched })
	at, tried, err := halve(len(all), c.lab.Budget, c.size.epochs, func(settings []int, epochs int) ([]time.Duration, error) {
		h.lab.Epochs = epochs
		for _, i := range settings {
			if err := c.prepare(ctx, h, all[i], nodes); err != nil {
				return nil, err
			}
		}
		took := make([]time.Duration, len(settings))
		err := c.lab.each(ctx, len(settings), func(ctx context.Context, i int) error {
			row, err := c.try(ctx, h, all[settings[i]], nodes, fmt.Sprintf("%d of %d settings for %d epochs", i+1, len(settings), epochs), h.enough)
			if err == nil {
				row.reach(h.target, h.lower)
				took[i] = h.expect(row)
			}
			return err
		})
		return took, err
	})
	return finalist{all[at], tried}, err
}

// enough ends a run at its target.
func (h *heat) enough(es []entry) bool { return reached(es[len(es)-1].quality, h.target, h.lower) }

// try trains with a setting.
func (c *contest) try(ctx context.Context, h *heat, s setting, nodes int, why string, enough func([]entry) bool) (*Row, error) {
	w, err := h.work(s)
	if err != nil {
		return nil, err
	}
	l := h.lab
	l.Step = c.took[c.stepOf(s, nodes)]
	row, err := l.train(ctx, trial{work: w, network: nets[0], policy: s.policy, nodes: nodes, setting: s.String(), ahead: s.ahead, enough: enough,
		why: fmt.Sprintf("%s, seed %d, %s", l.Task.Name(), l.Seed, why)})
	if err != nil {
		return nil, err
	}
	row.Task, row.Step, row.Metric, row.LowerIsBetter = l.Task.Name(), l.Step, row.metric, row.lowerIsBetter
	return row, nil
}

// prepare makes ready what trying a setting takes, while nothing else runs that would
// disturb a measurement.
func (c *contest) prepare(ctx context.Context, h *heat, s setting, nodes int) error {
	if _, err := h.work(s); err != nil || h.lab.Real != nil {
		return err
	}
	return c.measure(ctx, setting{fields: s.fields}, nodes)
}

// work is the task with a setting.
func (h *heat) work(s setting) (*work, error) {
	s.ahead, s.policy = false, nil // which change nothing of it
	if w := h.works[s.String()]; w != nil {
		return w, nil
	}
	t, err := h.lab.settings(h.lab.Exponent)
	if err != nil {
		return nil, err
	}
	if t, err = s.of(t); err != nil {
		return nil, err
	}
	w, err := h.lab.bounded(t, s.staleness)
	if err == nil {
		h.works[s.String()] = w
	}
	return w, err
}

// stepOf names the step of a program on so many nodes.
func (c *contest) stepOf(s setting, nodes int) string {
	return fmt.Sprint((&setting{fields: s.fields}).String(), " on ", nodes)
}

// measure finds what a step of a program computes on so many nodes. Where Lab.Step gives it,
// it is that of the defaults with one worker, and an epoch of every other program
// computes as much as one of these.
func (c *contest) measure(ctx context.Context, program setting, nodes int) error {
	key := c.stepOf(program, nodes)
	if _, ok := c.took[key]; ok {
		return nil
	}
	epoch, err := c.epoch(ctx, program)
	if err != nil {
		return err
	}
	h := c.seeds[0]
	w, err := h.work(program)
	if err != nil {
		return err
	}
	steps, err := h.lab.steps(ctx, w, nodes*h.lab.Workers)
	// What is charged for accesses can be more than all that was measured.
	c.took[key] = max(epoch/time.Duration(max(steps, 1)), 1)
	return err
}

// epoch is what an epoch of a program computes.
func (c *contest) epoch(ctx context.Context, program setting) (time.Duration, error) {
	h := c.seeds[0]
	if c.lab.Step > 0 {
		program = setting{}
	}
	key := program.String()
	if took, ok := c.took[key]; ok {
		return took, nil
	}
	w, err := h.work(program)
	if err != nil {
		return 0, err
	}
	if c.lab.Step > 0 {
		steps, err := h.lab.steps(ctx, w, 1)
		c.took[key] = c.lab.Step * time.Duration(steps)
		return c.took[key], err
	}
	h.lab.progress("measuring a step of " + h.lab.Task.Name() + ", " + key)
	c.took[key], _, err = h.lab.epoch(ctx, w)
	return c.took[key], err
}

// over sets rows of adaptive, by seed, beside the policy that reaches the
// target first; nil if no other one does. others are by policy and seed, merged their
// medians.
func over(mine []*Row, others [][]*Row, merged []*Row) *Over {
	first := -1
	for i, r := range merged {
		if r.ToTarget > 0 && (first < 0 || r.ToTarget < merged[first].ToTarget) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	var ratios []float64
	for at, other := range others[first] {
		switch {
		case mine[at].ToTarget == 0:
			ratios = append(ratios, never.Seconds())
		case other.ToTarget > 0:
			ratios = append(ratios, mine[at].ToTarget.Seconds()/other.ToTarget.Seconds())
		default:
			ratios = append(ratios, 0)
		}
	}
	slices.Sort(ratios)
	o := &Over{Policy: merged[first].Policy, Setting: merged[first].Setting}
	o.Ratio, o.Range = ratios[len(ratios)/2], [2]float64{ratios[0], ratios[len(ratios)-1]}
	o.Behind = o.Ratio > behind
	for _, x := range []*float64{&o.Ratio, &o.Range[0], &o.Range[1]} {
		if *x == never.Seconds() {
			*x = 0
		}
	}
	return o
}
