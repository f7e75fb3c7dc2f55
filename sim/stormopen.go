package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/placement"
)

// newStorm makes the storm of a seed, and the cluster for it.
func newStorm(seed uint64, w StormConfig) (*storm, Config) {
	rng := rand.New(rand.NewPCG(seed, 0x5703))
	w.decide(rng)
	s := &storm{seed: seed, config: w, hints: rng.IntN(2) == 0, async: rng.IntN(2) == 0, moves: rng.IntN(2) == 0, asked: map[[2]int]bool{}}
	if w.Bounded {
		s.bounds = newStormBounds(seed, w.Nodes*w.Workers)
	}
	if w.Cuts > 0 {
		s.cuts = newStormCuts()
	}
	s.all = rand.New(rand.NewPCG(seed, 0xa11)).IntN(2) == 0
	s.decideRounding()
	s.decideModel(rng)
	limits := s.decideLimits()
	longStep := s.decideFetching()
	s.history = history.New(w.Nodes*w.Workers, s.group, s.single, !s.hints || !s.async && newCancels(seed, 0) == nil).Holds(s.held).Early(s.depth > 0)
	cfg := Config{
		Nodes: w.Nodes, Workers: w.Workers, Seed: seed, Model: s.model, Policy: w.Policy, NoHints: !s.hints, Samplers: s.samples,
		Network: *w.Network, Compute: randomCompute(rng), Limits: limits, LongStep: longStep, Depth: s.depth, Strained: s.strain, Watch: true, Broken: w.Broken, BrokenCut: w.BrokenCut, BrokenBound: w.BrokenBound,
	}
	if s.bounds != nil {
		cfg.Barriers = s.bounds.behind
	}
	return s, cfg
}

// decide decides what the configuration leaves open of nodes, workers, policy, network and steps.
func (w *StormConfig) decide(rng *rand.Rand) {
	if w.Nodes == 0 {
		w.Nodes = 1 + rng.IntN(5)
	}
	if w.Workers == 0 {
		w.Workers = 1 + rng.IntN(3)
	}
	if w.Policy == nil {
		w.Policy = stormPolicy(rng)
	}
	w.Policy = inStorms(w.Policy)
	if w.Network == nil {
		n := randomNetwork(rng, w.Nodes)
		w.Network = &n
	}
	if w.Steps == 0 {
		w.Steps = defaultSteps
	}
}

// decideRounding decides about filters, and about how often bytes seem to bound the network.
func (s *storm) decideRounding() {
	if s.config.Filters == nil {
		s.lossy = newStormFilters(s.seed)
	}
	rng := rand.New(rand.NewPCG(s.seed, 0x57a1))
	if rng.IntN(2) != 0 {
		return
	}
	s.strain = []float64{0.3, 0.9}[rng.IntN(2)]
	if s.lossy != nil && rng.IntN(2) == 0 {
		s.lossy.near()
	}
}

// decideModel makes the tables, and decides which keys and samples of them workers use.
func (s *storm) decideModel(rng *rand.Rand) {
	w, relaxed := &s.config, uint(0)
	if placement.Learns(w.Policy) {
		rng := rand.New(rand.NewPCG(s.seed, 0x1ea53))
		s.silent = rng.IntN(2) == 0
		relaxed = rng.UintN(1 << clockTables)
	}
	s.model = stormModel(w.Nodes*w.Workers, w.Policy.Everywhere(true) && rng.IntN(2) == 0, relaxed, s.strain > 0, s.bounds, s.lossy, w.Filters...)
	for t := range clockTables {
		s.clocks += s.model.Table(t).Rows
	}
	for range 1 + rng.IntN(8) { // the fewer, the more they meet
		s.keys = append(s.keys, godwit.Key(rng.Uint64N(s.clocks)))
	}
	if rng.IntN(2) == 0 {
		s.samples = stormSamples(rng, s.model)
	}
}

// decideLimits returns the limits of the nodes.
func (s *storm) decideLimits() virtual.Limits {
	if s.limits = s.config.Limits; s.limits == (virtual.Limits{}) {
		s.limits = tightness(rand.New(rand.NewPCG(s.seed, 0x71647)))
	}
	limits := s.limits
	if limits == (virtual.Limits{}) {
		limits = usual.Usual
	}
	if rng := rand.New(rand.NewPCG(s.seed, 0x1d1e)); rng.IntN(2) == 0 {
		limits.Idle = -1
	}
	if rng := rand.New(rand.NewPCG(s.seed, 0x4e19)); rng.IntN(2) == 0 {
		limits.Share = 1 + rng.IntN(4)
	}
	return limits
}

// decideFetching decides whether workers fetch values ahead, and for how many steps. It returns from which length of
// a step on they do.
func (s *storm) decideFetching() (longStep time.Duration) {
	if s.ahead = placement.FetchesAhead(s.config.Policy) && !s.silent && s.seed%4 != 0; !s.ahead {
		return math.MaxInt64 // nobody
	}
	if rng := rand.New(rand.NewPCG(s.seed, 0xdee9)); rng.IntN(3) > 0 {
		s.depth = 1 + rng.IntN(4)
	}
	return -time.Hour // everybody
}

const defaultSteps = 50

// stormPolicy is any policy.
func stormPolicy(rng *rand.Rand) placement.Policy {
	names := placement.Names()
	i := rng.IntN(len(names) + 2)
	if i >= len(names) {
		return restless.Policy{}
	}
	return inStorms(policyNamed(names[i]))
}

// inStorms returns the policy that storms have instead of one that could not do
// what it is there for.
func inStorms(p placement.Policy) placement.Policy {
	if p == placement.NonUniform {
		return policyNamed("nonuniform(factor=2)")
	}
	return p
}

// policyNamed is ByName for names that are known to be right.
func policyNamed(name string) placement.Policy {
	p, err := placement.ByName(name)
	if err != nil {
		panic(err)
	}
	return p
}

// mayCopy reports whether a policy ever replicates.
func mayCopy(p placement.Policy) bool {
	return p.Everywhere(true) || p.Everywhere(false) || p.OnIntent(true) == placement.Copy || p.OnIntent(false) == placement.Copy
}

// randomNetwork is a network with more jitter, spikes and partitions than one should have.
func randomNetwork(rng *rand.Rand, nodes int) Network {
	n := Network{Latency: time.Duration(rng.Int64N(200_000)), Jitter: time.Duration(rng.Int64N(1_000_000))}
	if rng.IntN(2) == 0 {
		n.Bandwidth = []float64{1e7, 1e8, 1e9, 1e10}[rng.IntN(4)]
		n.Frame = time.Duration(rng.Int64N(5000))
	}
	if rng.IntN(2) == 0 {
		n.Spike, n.SpikeDelay = rng.Float64()/10, 20*time.Millisecond
	}
	if rng.IntN(2) == 0 {
		a, b, far := rng.IntN(nodes), rng.IntN(nodes), time.Duration(rng.Int64N(5_000_000))
		n.Far = func(from, to int) time.Duration {
			if from == a && to == b {
				return far
			}
			return 0
		}
	}
	for range rng.IntN(3) {
		from := time.Duration(rng.Int64N(20_000_000))
		p := Partition{From: from, To: from + time.Duration(rng.Int64N(10_000_000))}
		for i := range nodes {
			if rng.IntN(2) == 0 {
				p.Nodes = append(p.Nodes, i)
			}
		}
		n.Partitions = append(n.Partitions, p)
	}
	return n
}

// randomCompute is what computing costs in a storm, often nothing.
func randomCompute(rng *rand.Rand) Compute {
	upTo := func(d int64) time.Duration {
		if rng.IntN(3) == 0 {
			return 0
		}
		return time.Duration(rng.Int64N(d))
	}
	return Compute{Step: upTo(300_000), Spread: rng.Float64(), Key: upTo(5_000), Frame: upTo(20_000), Record: upTo(10_000), Round: upTo(10_000), Servers: 1 + rng.IntN(2)}
}

// tightness is how little room there is in queues: in half of the storms as much
// as anybody needs, else for some records, or for one.
func tightness(rng *rand.Rand) (l virtual.Limits) {
	if rng.IntN(2) == 0 {
		return l
	}
	few := func(most int) int {
		if rng.IntN(2) == 0 {
			return 1
		}
		return 1 + rng.IntN(most)
	}
	return virtual.Limits{Frame: few(400), Copies: few(400), Asked: few(2000), Rows: few(2000), Answers: few(400), Owed: 64 << 20, Ops: few(4), Ahead: 1 + rng.IntN(20)}
}
