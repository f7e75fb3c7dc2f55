package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// A trial is one simulated run of training.
type trial struct {
	work    *work
	network string
	policy  placement.Policy
	nodes   int
	noHints bool
	eager   bool   // intents are acted on at once
	name    string // instead of the policy's
	scheme  string // of sampling, where that is compared
}

// cluster makes simulated nodes on a network, to be closed.
func cluster(cfg sim.Config, network string) (*sim.Cluster, error) {
	nw, err := sim.NetworkNamed(network)
	if err != nil {
		return nil, err
	}
	cfg.Network = nw
	return sim.New(cfg)
}

// total is the stats of all nodes at this moment.
func total(c *sim.Cluster, nodes int) (s node.Stats) {
	for i := range nodes {
		s.Add(c.Stats(i))
	}
	return s
}

// A recorder keeps what each epoch of a run took and did.
type recorder struct {
	c     *sim.Cluster
	nodes int

	began   time.Duration // the epoch, and
	before  node.Stats    // what had been done until then
	elapsed time.Duration // of all epochs
	epochs  []entry
	eval    train.Evaluation // the last
}

type entry struct {
	took    time.Duration
	did     node.Stats
	loss    float64
	quality float64
	elapsed time.Duration // of the epochs until its end
}

// begin begins an epoch.
func (d *recorder) begin() { d.began, d.before = d.c.Now(), total(d.c, d.nodes) }

// record takes an event. Evaluation lies between the end of an epoch and the
// beginning of the next, and so is left out.
func (d *recorder) record(e train.Event) {
	if e.Loss != nil {
		took := d.c.Now() - d.began
		d.elapsed += took
		d.epochs = append(d.epochs, entry{took: took, did: total(d.c, d.nodes).Sub(d.before), loss: e.Loss.Mean(), elapsed: d.elapsed})
		return
	}
	d.eval = *e.Evaluation
	d.epochs[len(d.epochs)-1].quality = d.eval.Metrics[0].Value
	d.begin()
}

// fill writes the epochs, but for the first, into a row.
func (d *recorder) fill(r *Row) {
	for _, e := range d.epochs {
		r.Curve = append(r.Curve, Point{e.elapsed.Seconds(), e.loss, e.quality})
	}
	last := len(d.epochs) - 1
	r.Loss, r.Quality = d.epochs[last].loss, d.epochs[last].quality
	counted := d.epochs[min(1, last):]
	var did node.Stats
	var replicas, ends int
	for i, e := range counted {
		r.Epoch += e.took / time.Duration(len(counted))
		did.Add(e.did)
		if i < len(counted)-1 { // after the last nobody wants any
			replicas += e.did.Replicas
			ends++
		}
	}
	did.Replicas, did.LeadMs = replicas/max(ends, 1), d.epochs[last].did.LeadMs
	r.count(did)
}

func (l *Lab) train(ctx context.Context, t trial) (row *Row, err error) {
	row = &Row{Network: t.network, Policy: t.policy.Name(), Scheme: t.scheme, Nodes: t.nodes, Workers: l.Workers, Zipf: t.work.exponent}
	if t.name != "" {
		row.Policy = t.name
	}
	what := fmt.Sprintf("%s, %d nodes, %s", t.network, t.nodes, row.Policy)
	if t.scheme != "" {
		what += ", " + t.scheme
	}
	l.progress(what)
	c, err := cluster(sim.Config{Nodes: t.nodes, Workers: l.Workers, Seed: l.Seed, Model: t.work.model, Policy: t.policy,
		Samplers: t.work.samplers, NoHints: t.noHints, Eager: t.eager, Compute: l.Compute(l.Workers)}, t.network)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d := &recorder{c: c, nodes: t.nodes}
	d.begin()
	res, err := c.RunNodes(ctx, func(ctx context.Context, env train.Env) error { return l.program(ctx, env, t.work, d) })
	if errors.Is(err, train.ErrDiverged) {
		d.epochs[len(d.epochs)-1].loss = 0 // no number, so nothing to show
		row.Diverged, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", what, err)
	}
	d.fill(row)
	if res != nil {
		row.Messages = res.Messages
	}
	if t.eager {
		row.Window = 0
	}
	if len(d.eval.Metrics) > 0 {
		row.metric, row.lowerIsBetter = d.eval.Metrics[0].Name, d.eval.LowerIsBetter
	}
	return row, nil
}

// program is what a node does. Node 0 records.
func (l *Lab) program(ctx context.Context, env train.Env, w *work, d *recorder) error {
	evaluating := false
	if l.Calls == Single {
		env.Workers = slices.Clone(env.Workers)
		for i, w := range env.Workers {
			env.Workers[i] = single{w, &evaluating}
		}
	}
	env.Progress = func(e train.Event) {
		evaluating = e.Loss != nil // … until the evaluation is told
		if env.Node == 0 {
			d.record(e)
		}
	}
	_, err := w.task.Train(ctx, env, train.Options{Epochs: l.Epochs, EvalEvery: 1}, new(atomic.Int64))
	return err
}
