package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// A Runner runs a job on real nodes and tells what happens in it. It ends the
// job in order when stop is closed.
type Runner func(ctx context.Context, spec job.Spec, stop <-chan struct{}, tell func(job.Event)) (*job.Result, error)

// OnReal has the lab's programs run on up to four real nodes of a worker each,
// one run at a time. Only "delay", "sketch" and "best" have programs for them. There are
// fewer and larger blocks, as what they compute cannot be chosen.
func (l *Lab) OnReal(r Runner) {
	spec := *l.Linear
	spec.Examples.Examples *= 5
	l.Linear, l.Blocks = &spec, max(l.Blocks/3, 1)
	l.Real, l.Workers, l.Nodes, l.Most, l.Parallel = r, 1, []int{1, 2, 4}, 4, 1
	l.Seeds = 1
}

// A program is a run of a task, on simulated or on real nodes.
type program struct {
	what    string // for people
	work    *work
	nodes   int
	workers int // of each
	policy  placement.Policy
	epochs  int // at the most
	// evaluated has the model evaluated after each epoch, and tested has it tested
	// in the end.
	evaluated, tested bool
	// enough, if set, says of the epochs so far whether these do.
	enough func([]entry) bool

	// Of simulated nodes.
	network sim.Network
	compute sim.Compute
	calls   Calls // "" is Batched
	ahead   bool  // see [ahead]
	noHints bool
	eager   bool    // intents are acted on at once
	hash    *uint64 // if set, gets what stands for the values of all rows in the end
}

// An outcome is what came of a program.
type outcome struct {
	epochs   []entry
	test     job.Metrics
	metric   string // what quality is
	lower    bool   // … which is an error
	diverged bool   // in the epoch after the last of epochs
	messages uint64 // of simulated nodes
}

// one epoch's share of the time that its workers had, waiting.
func (e *entry) waiting(workers int) float64 {
	return e.did.Waited.Seconds() / (e.took.Seconds() * float64(workers))
}

// run runs a program, on real nodes if the lab has them.
func (l *Lab) run(ctx context.Context, p *program) (*outcome, error) {
	l.progress(p.what)
	do := l.simulated
	if l.Real != nil {
		do = l.real
	}
	o, err := do(ctx, p)
	if errors.Is(err, train.ErrDiverged) && len(o.epochs) > 0 {
		o.diverged, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", p.what, err)
	}
	return o, nil
}

func (l *Lab) simulated(ctx context.Context, p *program) (o *outcome, err error) {
	o = &outcome{}
	c, err := sim.New(sim.Config{Nodes: p.nodes, Workers: p.workers, Seed: l.Seed, Model: p.work.model, Policy: p.policy,
		Samplers: p.work.samplers, NoHints: p.noHints, Eager: p.eager, Network: p.network, Compute: p.compute})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d := &recorder{c: c, program: p, stop: make(chan struct{})}
	d.begin()
	res, err := c.RunNodes(ctx, func(ctx context.Context, env train.Env) error { return d.node(ctx, env, o) })
	o.epochs = d.epochs
	if res != nil {
		o.messages = res.Messages
	}
	if len(d.eval.Metrics) > 0 {
		o.metric, o.lower = d.eval.Metrics[0].Name, d.eval.LowerIsBetter
	}
	if err == nil && p.hash != nil {
		*p.hash = hashOf(c, p.work.model)
	}
	return o, err
}

// node is what a simulated node does. Node 0 records.
func (d *recorder) node(ctx context.Context, env train.Env, o *outcome) error {
	p := d.program
	evaluating := false
	env.Stop, env.Workers = d.stop, d.callers(env.Workers, &evaluating)
	env.Progress = func(e train.Event) {
		evaluating = e.Loss != nil // … until the evaluation is told
		if env.Node == 0 {
			d.record(e)
		}
	}
	opts := train.Options{Epochs: p.epochs}
	if p.evaluated {
		opts.EvalEvery = 1
	}
	if _, err := p.work.task.Train(ctx, env, opts, new(atomic.Int64)); err != nil || !p.tested {
		return err
	}
	evaluating = true
	ms, err := p.work.task.Test(ctx, &env, "test", false)
	if env.Node == 0 {
		o.test = ms
	}
	return err
}

// A recorder keeps what each epoch of a simulated run took and did.
type recorder struct {
	c       *sim.Cluster
	program *program
	stop    chan struct{} // closed once the epochs do

	began    time.Duration // the epoch, and
	before   node.Stats    // what had been done until then, and
	computed time.Duration // in how much processor time
	synced   time.Duration // when a worker last heard that all updates were visible
	elapsed  time.Duration // of all epochs
	epochs   []entry
	eval     train.Evaluation // the last
}

type entry struct {
	took     time.Duration
	did      node.Stats
	loss     float64
	examples int64         // trained
	computed time.Duration // processor time of all nodes; 0 where it is not known
	// elapsed is the time of the epochs until its end, and settled that until its
	// updates were visible everywhere, where the model was evaluated.
	elapsed, settled time.Duration
	quality          float64
}

// total is the stats of all nodes at this moment.
func total(c *sim.Cluster, nodes int) (s node.Stats) {
	for i := range nodes {
		s.Add(c.Stats(i))
	}
	return s
}

func (d *recorder) total() (did node.Stats, computed time.Duration) {
	for i := range d.program.nodes {
		computed += d.c.Computed(i)
	}
	return total(d.c, d.program.nodes), computed
}

// begin begins an epoch.
func (d *recorder) begin() {
	d.began = d.c.Now()
	d.before, d.computed = d.total()
}

// record takes an event, unless the epochs so far do. Evaluation lies between the end of
// an epoch and the beginning of the next, and so is left out.
func (d *recorder) record(e train.Event) {
	select {
	case <-d.stop:
		return
	default:
	}
	if e.Loss != nil {
		d.ended(e.Loss)
	} else {
		last := &d.epochs[len(d.epochs)-1]
		d.eval = *e.Evaluation
		last.quality = d.eval.Metrics[0].Value
		last.settled = max(last.settled, last.elapsed+d.synced-d.began)
	}
	d.begin()
	if enough := d.program.enough; enough != nil && (e.Loss == nil) == d.program.evaluated && enough(d.epochs) {
		close(d.stop)
	}
}

// ended takes the end of an epoch.
func (d *recorder) ended(loss *train.Loss) {
	did, computed := d.total()
	took := d.c.Now() - d.began
	d.elapsed += took
	d.epochs = append(d.epochs, entry{took: took, did: did.Sub(d.before), loss: loss.Mean(), examples: loss.Examples,
		computed: computed - d.computed, elapsed: d.elapsed, settled: d.elapsed})
}

func (l *Lab) real(ctx context.Context, p *program) (*outcome, error) {
	spec := job.Default(p.work.settings)
	spec.Nodes, spec.Workers, spec.Policy, spec.Seed = p.nodes, p.workers, p.policy.Name(), l.Seed
	spec.Options, spec.Untrained, spec.Data, spec.Staleness = train.Options{Epochs: p.epochs}, false, l.Data, p.work.staleness
	if p.evaluated {
		spec.Options.EvalEvery = 1
	}
	r := &realRecorder{program: p, stop: make(chan struct{})}
	result, err := l.Real(ctx, spec, r.stop, r.event)
	if err != nil {
		return &r.outcome, err
	}
	r.outcome.test = result.Test
	return &r.outcome, nil
}

// did sums up epochs.
func did(epochs []entry) (s node.Stats, took time.Duration) {
	for _, e := range epochs {
		s.Add(e.did)
		took += e.took
	}
	return s, took
}
