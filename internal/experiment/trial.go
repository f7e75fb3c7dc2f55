package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// A trial is one run of training, evaluated after each epoch.
type trial struct {
	work    *work
	network string
	policy  placement.Policy
	nodes   int
	noHints bool
	eager   bool   // intents are acted on at once
	name    string // instead of the policy's
	scheme  string // of sampling, where that is compared
	setting string // … or of everything
	ahead   bool   // see [ahead]
	shared  bool   // the nodes' workers and cores are all on one node
	enough  func([]entry) bool
	why     string // it is run, for people
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

// row is the row of a trial that is yet to run.
func (l *Lab) row(t trial) *Row {
	row := &Row{Network: t.network, Policy: t.policy.Name(), Scheme: t.scheme, Setting: t.setting, Nodes: t.nodes, Workers: l.Workers, Zipf: t.work.exponent}
	if t.name != "" {
		row.Policy = t.name
	}
	if l.Real != nil {
		row.Network = "real"
	}
	return row
}

// what names a trial for people.
func (t *trial) what(row *Row) string {
	what := fmt.Sprintf("%s, %d nodes, %s", row.Network, t.nodes, row.Policy)
	for _, s := range []string{t.scheme, t.setting, t.why} {
		if s != "" {
			what += ", " + s
		}
	}
	return what
}

func (l *Lab) train(ctx context.Context, t trial) (*Row, error) {
	nw, err := sim.NetworkNamed(t.network)
	if err != nil {
		return nil, err
	}
	row := l.row(t)
	nodes, workers, compute := t.nodes, l.Workers, l.Compute(l.Workers)
	if t.shared {
		nodes, workers, compute.Cores = 1, t.nodes*workers, t.nodes*compute.Cores
	}
	o, err := l.run(ctx, &program{what: t.what(row), work: t.work, nodes: nodes, workers: workers, policy: t.policy,
		epochs: l.Epochs, evaluated: true, enough: t.enough, network: nw, compute: compute, calls: l.Calls,
		ahead: t.ahead, noHints: t.noHints, eager: t.eager})
	if err != nil {
		return nil, err
	}
	o.fill(row, t.work)
	if t.eager {
		row.Window = 0
	}
	return row, nil
}

// fill writes the epochs into a row, but for the first.
func (o *outcome) fill(r *Row, w *work) {
	for _, e := range o.epochs {
		r.Curve = append(r.Curve, Point{e.settled.Seconds(), e.loss, e.quality})
	}
	r.Diverged, r.metric, r.lowerIsBetter, r.Messages = o.diverged, o.metric, o.lower, o.messages
	last := len(o.epochs) - 1
	r.Loss, r.Quality = o.epochs[last].loss, o.epochs[last].quality
	counted := o.epochs[min(1, last):]
	var did node.Stats
	var computed, took time.Duration
	var replicas, ends int
	var examples int64
	for i, e := range counted {
		r.Epoch += e.took / time.Duration(len(counted))
		did.Add(e.did)
		took += e.took
		computed, examples = computed+e.computed, examples+e.examples
		if i < len(counted)-1 { // after the last nobody wants any
			replicas += e.did.Replicas
			ends++
		}
	}
	did.Replicas, did.LeadMs = replicas/max(ends, 1), o.epochs[last].did.LeadMs
	r.count(did)
	r.Waiting = did.Waited.Seconds() / (took.Seconds() * float64(r.Nodes*r.Workers))
	_, each := w.task.Unit()
	items := float64(max(examples/each, 1))
	r.ComputedPerItem, r.BytesPerItem = time.Duration(float64(computed)/items), float64(did.SentBytes)/items
}
