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

// Local is a [Runner] whose nodes are those of this process.
func Local(ctx context.Context, spec job.Spec, stop <-chan struct{}, tell func(job.Event)) (*job.Result, error) {
	return job.Local(ctx, spec.Task.Name(), spec, job.NodeConfig{Stop: stop, Progress: tell})
}

// OnReal has the lab's programs run on up to four real nodes of a worker each,
// one run at a time. Only "delay" and "sketch" have programs for them. There are
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
	network sim.Network // of simulated nodes
	compute sim.Compute // likewise
	epochs  int         // at the most
	// hash, if set, gets what stands for the values of all rows in the end.
	hash *uint64
	// enough, if set, says of the epochs so far whether these do.
	enough func([]entry) bool
}

// An outcome is what came of a program.
type outcome struct {
	epochs []entry
	test   job.Metrics
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
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", p.what, err)
	}
	return o, nil
}

func (l *Lab) simulated(ctx context.Context, p *program) (o *outcome, err error) {
	c, err := sim.New(sim.Config{Nodes: p.nodes, Workers: p.workers, Seed: l.Seed, Model: p.work.model, Policy: p.policy,
		Samplers: p.work.samplers, Network: p.network, Compute: p.compute})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	o = &outcome{}
	stop := make(chan struct{})
	d := &recorder{c: c, nodes: p.nodes}
	d.begin()
	_, err = c.RunNodes(ctx, func(ctx context.Context, env train.Env) error {
		env.Stop = stop
		env.Progress = func(e train.Event) {
			if env.Node != 0 || e.Loss == nil {
				return
			}
			d.record(e)
			d.begin()
			if p.enough != nil && p.enough(d.epochs) {
				closeOnce(stop)
			}
		}
		if _, err := p.work.task.Train(ctx, env, train.Options{Epochs: p.epochs}, new(atomic.Int64)); err != nil {
			return err
		}
		ms, err := p.work.task.Test(ctx, &env, "test", false)
		if env.Node == 0 {
			o.test = ms
		}
		return err
	})
	if o.epochs = d.epochs; err == nil && p.hash != nil {
		*p.hash = hashOf(c, p.work.model)
	}
	return o, err
}

func (l *Lab) real(ctx context.Context, p *program) (*outcome, error) {
	spec := job.Default(p.work.settings)
	spec.Nodes, spec.Workers, spec.Policy, spec.Seed = p.nodes, p.workers, p.policy.Name(), l.Seed
	spec.Options, spec.Untrained, spec.Data = train.Options{Epochs: p.epochs}, false, l.Data
	o := &outcome{}
	stop := make(chan struct{})
	var elapsed time.Duration
	r, err := l.Real(ctx, spec, stop, func(e job.Event) {
		if e.Epoch == nil {
			return
		}
		took := time.Duration(e.Epoch.Seconds * float64(time.Second))
		elapsed += took
		o.epochs = append(o.epochs, entry{took: took, did: e.Epoch.Stats, loss: e.Epoch.Loss, elapsed: elapsed})
		if p.enough != nil && p.enough(o.epochs) {
			closeOnce(stop)
		}
	})
	if err != nil {
		return nil, err
	}
	o.test = r.Test
	return o, nil
}

// closeOnce closes a channel that its caller alone closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// did sums up epochs.
func did(epochs []entry) (s node.Stats, took time.Duration) {
	for _, e := range epochs {
		s.Add(e.did)
		took += e.took
	}
	return s, took
}
