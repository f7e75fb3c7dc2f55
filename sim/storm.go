package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/history"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/optim"
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
	// Limits are those of the nodes\' queues; zero: open, and little in every other storm.
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

// The rows of a storm are vector clocks of its workers: a worker pushes 1 at its
// place, or, where the largest is kept, how often it has pushed. Those of the last
// table are set, too. The bits of relaxed are those of relaxed tables. Near says that some may be rounded where bytes bound the network: whole numbers up to 256 stay what
// they are. The first row of each is hot, or the nodes find out what is.
func stormModel(workers int, told bool, relaxed uint, near bool, b *stormBounds, l *stormFilters, filters ...godwit.Filter) *godwit.Model {
	var hot func(row uint64) float64
	if told {
		hot = func(row uint64) float64 {
			if row == 0 {
				return 1000
			}
			return 1
		}
	}
	tables := filter.On([]godwit.Table{
		{Name: "plain", Rows: 5, Dim: workers, Hot: hot},
		{Name: "counted", Rows: 3, Dim: workers, Rule: counting{}, Hot: hot},
		{Name: "long", Rows: 10, Dim: workers + 5, Rule: turned{}, Hot: hot},
		{Name: "most", Rows: 3, Dim: workers, Rule: optim.Max{}, Hot: hot},
		{Name: "set", Rows: 4, Dim: workers + 1, Rule: opposite{}, Hot: hot},
	}, filters...)
	tables[mostTable].Filters = nil
	for i := range tables {
		tables[i].Relaxed = relaxed>>i&1 != 0
	}
	if near {
		tables[0].Rule, tables[2].Rule = adding{}, turning{}
	}
	if l != nil {
		tables = l.on(tables)
	}
	if b != nil {
		b.bind(tables)
	}
	m, err := godwit.NewModel(tables...)
	if err != nil {
		panic(err) // never, but for filters: the numbers above are right
	}
	return m
}

const (
	mostTable   = 3
	setTable    = 4
	clockTables = 5
)

// counting is a rule with state: it counts the pushes of a row.
type counting struct{ godwit.Add }

func (counting) Name() string          { return "counting" }
func (counting) StateLen(int) int      { return 1 }
func (counting) InitState(s []float32) { s[0] = 0 }
func (c counting) Apply(v, s, p []float32) {
	c.Add.Apply(v, nil, p)
	s[0]++
}

// turned is a counting rule whose updates travel with the other sign, and
// whose copies may have older state: a row into which something came that was
// not packed, or twice, or whose state was overwritten, is wrong in the end.
type turned struct{ counting }

func (turned) Name() string { return "turned" }

func (turned) Pack(_, _, dv []float32)  { vec.Scale(dv, -1) }
func (turned) Merge(v, _, dv []float32) { vec.Sub(v, dv) }
func (turned) Fresh(dim int) int        { return dim }

// adding and turning are rules of tables that may be rounded.
type (
	adding  struct{ godwit.Add }
	turning struct{ turned }
)

func (adding) Name() string { return "adding" }
func (adding) Roundable()   {}

func (turning) Name() string { return "turning" }
func (turning) Roundable()   {}

// opposite is addition in rows that keep the opposite of their value: a pull that
// is not answered by the rule, or a set row that it did not see, is wrong.
type opposite struct{ godwit.Add }

func (opposite) Name() string              { return "opposite" }
func (opposite) Apply(v, _, p []float32)   { vec.Sub(v, p) }
func (opposite) Query(dst, v, _ []float32) { copy(dst, v); vec.Scale(dst, -1) }
func (opposite) Keep(v, _ []float32)       { vec.Scale(v, -1) }

func newStorm(seed uint64, w StormConfig) (*storm, Config) {
	rng := rand.New(rand.NewPCG(seed, 0x5703))
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
	workers := w.Nodes * w.Workers
	s := &storm{seed: seed, config: w, hints: rng.IntN(2) == 0, async: rng.IntN(2) == 0, moves: rng.IntN(2) == 0}
	if w.Bounded {
		s.bounds = newStormBounds(seed, workers)
	}
	if w.Filters == nil {
		s.lossy = newStormFilters(seed)
	}
	if rng := rand.New(rand.NewPCG(seed, 0x57a1)); rng.IntN(2) == 0 {
		s.strain = []float64{0.3, 0.9}[rng.IntN(2)]
		if s.lossy != nil && rng.IntN(2) == 0 {
			s.lossy.near()
		}
	}
	relaxed := uint(0)
	if placement.Learns(w.Policy) {
		rng := rand.New(rand.NewPCG(seed, 0x1ea53))
		s.silent = rng.IntN(2) == 0
		relaxed = rng.UintN(1 << clockTables)
	}
	s.model = stormModel(workers, w.Policy.Everywhere(true) && rng.IntN(2) == 0, relaxed, s.strain > 0, s.bounds, s.lossy, w.Filters...)
	for t := range clockTables {
		s.clocks += s.model.Table(t).Rows
	}
	for range 1 + rng.IntN(8) { // the fewer, the more they meet
		s.keys = append(s.keys, godwit.Key(rng.Uint64N(s.clocks)))
	}
	if rng.IntN(2) == 0 {
		s.samples = stormSamples(rng, s.model)
	}
	if s.limits = w.Limits; s.limits == (virtual.Limits{}) {
		s.limits = tightness(rand.New(rand.NewPCG(seed, 0x71647)))
	}
	limits := s.limits
	if limits == (virtual.Limits{}) {
		limits = usual.Usual
	}
	if rng := rand.New(rand.NewPCG(seed, 0x1d1e)); rng.IntN(2) == 0 {
		limits.Idle = -1
	}
	if rng := rand.New(rand.NewPCG(seed, 0x4e19)); rng.IntN(2) == 0 {
		limits.Share = 1 + rng.IntN(4)
	}
	s.all = rand.New(rand.NewPCG(seed, 0xa11)).IntN(2) == 0
	policy := w.Policy
	single := func(k godwit.Key) bool {
		i, _ := s.model.Locate(k)
		return !mayCopy(policy) || s.silent && len(s.samples) == 0 && !s.model.Table(i).Relaxed
	}
	s.ahead, s.asked = placement.FetchesAhead(policy) && !s.silent && seed%4 != 0, map[[2]int]bool{}
	longStep := time.Duration(math.MaxInt64) // nobody fetches ahead
	if s.ahead {
		longStep = -time.Hour // everybody does
		if rng := rand.New(rand.NewPCG(seed, 0xdee9)); rng.IntN(3) > 0 {
			s.depth = 1 + rng.IntN(4)
		}
	}
	s.history = history.New(workers, s.group, single, !s.hints || !s.async && newCancels(seed, 0) == nil).Holds(s.held).Early(s.depth > 0)
	cfg := Config{
		Nodes: w.Nodes, Workers: w.Workers, Seed: seed, Model: s.model, Policy: policy, NoHints: !s.hints, Samplers: s.samples,
		Network: *w.Network, Compute: randomCompute(rng), Limits: limits, LongStep: longStep, Depth: s.depth, Strained: s.strain, Watch: true, Broken: w.Broken, BrokenCut: w.BrokenCut, BrokenBound: w.BrokenBound,
	}
	if s.bounds != nil {
		cfg.Barriers = s.bounds.behind
	}
	if w.Cuts > 0 {
		s.cuts = newStormCuts()
	}
	return s, cfg
}

// group returns the number of those who see each other's writes at once, among them a
// worker: the workers of a node, or, where each fetches ahead for itself, that worker.
func (s *storm) group(worker int) int {
	if s.ahead {
		return worker
	}
	return worker / s.config.Workers
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
