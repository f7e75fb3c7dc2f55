package experiment

import (
	"context"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// A Twin simulates what real nodes did, to see how far the two agree.
type Twin struct {
	lab  Lab
	spec job.Spec
	work *work
}

// NewTwin returns the twin of a run. It measures a step on this machine.
func NewTwin(ctx context.Context, spec job.Spec, costs bench.Costs) (*Twin, error) {
	t := &Twin{lab: Lab{Data: spec.Data, Seed: spec.Seed, Evaluated: 1, Costs: costs}, spec: spec}
	var err error
	if t.work, err = t.lab.load(spec.Task); err != nil {
		return nil, err
	}
	t.lab.Step, err = t.lab.calibrate(ctx, t.work)
	return t, err
}

// Compute is what the nodes of the twin compute, one core a worker.
func (t *Twin) Compute() sim.Compute { return t.lab.Compute(t.spec.Workers) }

// Epochs returns how long the epochs take under a policy, and how many frames are sent
// in all of them.
func (t *Twin) Epochs(ctx context.Context, nodes int, policy placement.Policy, network sim.Network, compute sim.Compute) (times []time.Duration, frames uint64, err error) {
	o, err := t.lab.simulated(ctx, &program{work: t.work, nodes: nodes, workers: t.spec.Workers, policy: policy,
		network: network, compute: compute, epochs: t.spec.Options.Epochs})
	if err != nil {
		return nil, 0, err
	}
	for _, e := range o.epochs {
		times = append(times, e.took)
		frames += e.did.Frames
	}
	return times, frames, nil
}
