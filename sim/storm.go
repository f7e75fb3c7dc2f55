package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// A StormConfig is the configuration of a storm. What it leaves open, the seed
// decides.
type StormConfig struct {
	Nodes   int // 0: open, 1 … 5
	Workers int // of each node; 0: open, 1 … 3
	// Policy is open where it is nil. The default rule of nonuniform, by which none of so
	// few keys is ever hot, is taken as nonuniform(factor=2).
	Policy  placement.Policy
	Network *Network // nil: open, and disorderly
	Steps   int      // that each worker makes; 0 is 50
	// Limits are those of the nodes' queues; zero: open, and little in every other storm.
	Limits virtual.Limits
	// Bounded gives the tables bounds on their staleness, and windows, and has
	// workers meet at barriers and use what only such tables have.
	Bounded bool
	// Broken switches rules of the protocol off, to see that storms notice.
	Broken protocol.Broken
	// Cuts is how many cuts are made while the workers work. No call is cancelled then.
	Cuts int
	// BrokenCut switches rules of cuts off.
	BrokenCut protocol.BrokenCut
	// BrokenBound does so with rules of bounded staleness.
	BrokenBound virtual.BrokenBound
	// Filters are those of all tables, other than that of the largest. They must
	// let whole numbers pass (godwit.LossFractions), by which storms are judged. nil: open;
	// an empty list: none.
	Filters []godwit.Filter
}

// A StormReport is what a storm was and did.
type StormReport struct {
	Result
	Config string // what the configuration and the seed made of it
	// Interrupted is how often another goroutine came between, 0 unless built with
	// the tag preempt.
	Interrupted uint64 `json:",omitempty"`
	// Scanned says what scans of tables met.
	Scanned Scanned
	// Cancelled says which calls gave up when their contexts ended.
	Cancelled Cancelled `json:"-"`
	// Rounded is how many vectors of fractions were rounded.
	Rounded int `json:"-"`
	// Aged is how many reads were judged by their age, of a policy that fetches ahead.
	Aged int `json:"-"`
	// Judged says what the reads of bounded tables could have broken.
	Judged  history.JudgedClocks `json:"-"`
	Rebound int                  `json:"-"` // changes of a bound
	Cut     DidCuts              `json:"-"` // what the cuts met
}

// Storm lets random workers loose on a few keys and judges everything that they
// see, and the cluster while they run and at rest. An error is a failed promise
// of docs/guarantees.md, or of the cluster's own order (see [Cluster.Check]);
// the same seed and config give it again. The report is never nil.
func Storm(ctx context.Context, seed uint64, w StormConfig) (*StormReport, error) {
	s, cfg := newStorm(seed, w)
	rep := &StormReport{Config: s.String()}
	sched := newScheduler(seed)
	defer sched.install()()
	c, err := New(cfg)
	if err != nil {
		return rep, err
	}
	s.c, sched.c = c, c
	r, err := c.RunNodes(ctx, s.program)
	if err == nil {
		rep.Result, rep.Scanned, rep.Cancelled, rep.Aged = *r, s.scanned, s.cancelled, s.aged
		if s.lossy != nil {
			rep.Rounded = s.lossy.rounded
		}
		if s.bounds != nil {
			rep.Judged, rep.Rebound = s.bounds.clocks.Judged, s.bounds.changes
		}
		err = s.judge()
		if s.cuts != nil {
			rep.Cut = s.cuts.did
		}
	}
	if e := c.Close(); err == nil {
		err = e
	}
	rep.Interrupted = sched.count
	return rep, err
}

type storm struct {
	seed    uint64
	all     bool // workers end with SyncAll
	config  StormConfig
	hints   bool
	async   bool // workers have several operations outstanding
	moves   bool // workers call Localize
	silent  bool // workers announce nothing, and each has keys that it uses most
	c       *Cluster
	limits  virtual.Limits
	model   *godwit.Model
	keys    []godwit.Key
	samples []sampling.Spec
	history *history.History
	scanned Scanned
	bounds  *stormBounds    // if the config is bounded
	cuts    *stormCuts      // if it has cuts made
	lossy   *stormFilters   // if it leaves filters open, and the seed has some
	clocks  uint64          // keys of vector clocks, which are the first
	strain  float64         // how often bytes seem to bound the network; see Config.Strained
	ahead   bool            // the policy has values fetched ahead,
	depth   int             // for how many steps at first; 0: as the workers see fit
	aged    int             // … and so many reads were judged by their age
	asked   map[[2]int]bool // nodes and keys of which the node may have a replica

	cancelled Cancelled
	abandoned [][]float32 // buffers of calls that were given up
}

// group returns the number of those who see each other's writes at once, among them a
// worker: the workers of a node, or, where each fetches ahead for itself, that worker.
func (s *storm) group(worker int) int {
	if s.ahead {
		return worker
	}
	return worker / s.config.Workers
}

// single reports whether a key never has more than one copy.
func (s *storm) single(k godwit.Key) bool {
	i, _ := s.model.Locate(k)
	return !mayCopy(s.config.Policy) || s.silent && len(s.samples) == 0 && !s.model.Table(i).Relaxed
}

func (s *storm) String() string {
	w := &s.config
	b := []string{fmt.Sprintf("%s, %d nodes of %d workers, %d keys", w.Policy.Name(), w.Nodes, w.Workers, len(s.keys))}
	for _, x := range []struct {
		is   bool
		what string
	}{{s.hints, "hints"}, {s.async, "asynchronous"}, {s.moves && !s.silent, "localize"}, {s.silent, "nothing announced"}, {len(s.samples) > 0, "samples"}, {s.strain > 0, "strained"}, {newCancels(s.seed, 0) != nil, "cancelled calls"}, {s.depth > 0, "own pushes added"}, {s.limits != virtual.Limits{}, "little room"}, {len(w.Network.Partitions) > 0, "partitions"}, {w.Network.Spike > 0, "spikes"}} {
		if x.is {
			b = append(b, x.what)
		}
	}
	if s.bounds != nil {
		b = append(b, s.bounds.String())
	}
	if s.lossy != nil {
		b = append(b, s.lossy.String())
	}
	return strings.Join(b, ", ")
}

// judge looks at the cluster when all is over.
func (s *storm) judge() error {
	if err := s.c.Check(); err != nil {
		return err
	}
	if err := s.c.unwanted(); err != nil {
		return err
	}
	if err := s.untouched(); err != nil {
		return err
	}
	if err := s.cuts.judge(s); err != nil {
		return err
	}
	for k := godwit.Key(s.clocks); s.model.Has(k); k++ {
		if err := s.lossy.conserved(k, s.c.Value(k), false); err != nil {
			return err
		}
	}
	for k := godwit.Key(0); uint64(k) < s.clocks; k++ {
		if err := s.history.Final(k, s.c.Value(k)); err != nil {
			return fmt.Errorf("sim: %w", err)
		}
		if err := s.counted(k); err != nil {
			return err
		}
	}
	return nil
}

// counted compares the state of a row with the pushes that there were.
func (s *storm) counted(k godwit.Key) error {
	if s.model.RowLen(k) == s.model.Dim(k) {
		return nil
	}
	owner, holds, _ := s.c.holdings(k)
	if len(owner) == 0 {
		return nil
	}
	row := holds[owner[0]].Row
	least, most := s.history.Pushes(k)
	if s.held(k) { // several are one in the end
		least = min(least, 1)
	}
	if got := int(row[len(row)-1]); got < least || got > most {
		return fmt.Errorf("sim: the state of key %d counts %d pushes, there were %d … %d", k, got, least, most)
	}
	return nil
}
