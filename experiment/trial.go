package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// A trial is one simulated run of training.
type trial struct {
	work    *work
	network string
	policy  placement.Policy
	nodes   int
	noHints bool
	name    string // instead of the policy's
}

// A Row is what a run came to. Counts are sums over all nodes. Of training
// they are those of the epochs that Lab.Epochs says.
type Row struct {
	Network string  `json:"network"`
	Policy  string  `json:"policy"`
	Nodes   int     `json:"nodes"`
	Workers int     `json:"workers"` // of each node
	Zipf    float64 `json:"zipf"`    // of generated data; 0 where it is read
	Offset  int     `json:"offset,omitempty"`
	// Epoch is the virtual time of an epoch, or of all of "timing".
	Epoch   time.Duration `json:"epoch_ns"`
	Speedup float64       `json:"speedup,omitempty"` // over one node
	Loss    float64       `json:"loss,omitempty"`    // of the last epoch, a query
	MRR     float64       `json:"mrr,omitempty"`
	// Shares of accesses.
	NoMessage float64 `json:"no_message"`
	Remote    float64 `json:"remote"`
	Replica   float64 `json:"replica"`

	BytesPerAccess float64 `json:"bytes_per_access"` // sent
	Accesses       uint64  `json:"accesses"`
	Moves          uint64  `json:"moves"`
	Copies         uint64  `json:"copies"` // replicas set up
	Drops          uint64  `json:"drops"`
	Deltas         uint64  `json:"deltas"`
	Refreshes      uint64  `json:"refreshes"`
	Rounds         uint64  `json:"rounds"`
	// Replicas is how many there are: at the end of the last epoch, or in "timing"
	// the mean over the run.
	Replicas float64 `json:"replicas"`
	Window   int64   `json:"window"`  // the widest of a worker, in clocks
	LeadMs   float64 `json:"lead_ms"` // from asking for a key to its arrival
}

// count takes in what nodes did from one moment to another.
func (r *Row) count(from, to node.Stats) {
	n := to.Accesses() - from.Accesses()
	share := func(a, b uint64) float64 { return float64(b-a) / float64(max(n, 1)) }
	r.Accesses, r.NoMessage = n, share(from.Local+from.Replica, to.Local+to.Replica)
	r.Remote, r.Replica = share(from.Remote, to.Remote), share(from.Replica, to.Replica)
	r.BytesPerAccess = share(from.SentBytes, to.SentBytes)
	r.Moves, r.Copies, r.Drops = to.Moves-from.Moves, to.Copies-from.Copies, to.Drops-from.Drops
	r.Deltas, r.Refreshes, r.Rounds = to.Deltas-from.Deltas, to.Refreshes-from.Refreshes, to.Rounds-from.Rounds
	r.Replicas, r.Window, r.LeadMs = float64(to.Replicas), to.Window, to.LeadMs
}

// task is kge's, judged by one worker of each node or not at all: ranking reads
// all entities at each worker that takes part.
type task struct {
	*kge.Task
	unjudged bool
}

func (t task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	if t.unjudged {
		return train.Evaluation{Metrics: []train.Metric{{Name: "none"}}}, nil
	}
	e := *env
	e.Workers = e.Workers[:1]
	return t.Task.Evaluate(ctx, &e, epoch)
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

// A stamp is when an epoch ended, and what had been done.
type stamp struct {
	at    time.Duration
	stats node.Stats
}

func (l *Lab) train(ctx context.Context, t trial) (row *Row, err error) {
	row = &Row{Network: t.network, Policy: t.policy.Name(), Nodes: t.nodes, Workers: l.Workers}
	if t.name != "" {
		row.Policy = t.name
	}
	if l.Progress != nil {
		l.Progress(fmt.Sprintf("%s, %d nodes, %s", t.network, t.nodes, row.Policy))
	}
	c, err := cluster(sim.Config{Nodes: t.nodes, Workers: l.Workers, Seed: l.Seed, Model: t.work.model, Policy: t.policy,
		Samplers: t.work.samplers, NoHints: t.noHints, Compute: l.Compute()}, t.network)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	stamps := []stamp{{c.Now(), total(c, t.nodes)}}
	var rep *train.Report
	_, err = c.RunNodes(ctx, func(ctx context.Context, env train.Env) error {
		if env.Node == 0 {
			env.Progress = func(e train.Event) {
				if e.Loss != nil {
					stamps = append(stamps, stamp{c.Now(), total(c, t.nodes)})
				}
			}
		}
		r, err := train.Run(ctx, env, task{t.work.task, false}, train.Options{Epochs: l.Epochs})
		if env.Node == 0 {
			rep = r
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("experiment: %s, %d nodes, %s: %w", t.network, t.nodes, row.Policy, err)
	}
	if l.Epochs > 1 {
		stamps = stamps[1:]
	}
	first, last := stamps[0], stamps[len(stamps)-1]
	row.Epoch = (last.at - first.at) / time.Duration(len(stamps)-1)
	row.count(first.stats, last.stats)
	row.Loss, row.MRR = rep.Losses[rep.Epochs-1].Mean(), rep.Results[len(rep.Results)-1].Metrics[0].Value
	return row, nil
}
