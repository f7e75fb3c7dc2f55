package sim

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/linear"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// A program has few operations on few keys, so that its history can be judged
// by search. Each of its workers waits for an operation before the next.
type program struct {
	seed   uint64
	policy placement.Policy
	rule   godwit.Rule // of all keys
	sets   bool
	silent bool // workers announce nothing, and each has a key that it uses most
	ops    int  // of each worker
	broken protocol.Broken

	history linear.History
	sum     node.Stats
}

// run runs it on up to four nodes with up to eight workers together.
func (s *program) run() error {
	rng := rand.New(rand.NewPCG(s.seed, 3))
	nodes := 2 + rng.IntN(3)
	workers := 1 + rng.IntN(2)
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 40, Dim: nodes * workers, Rule: s.rule, Hot: func(row uint64) float64 { return 1 }})
	if err != nil {
		return err
	}
	limits := usual.Usual
	if s.broken != (protocol.Broken{}) || s.seed%4 < 2 {
		limits.Idle = -1
	}
	c, err := New(Config{Nodes: nodes, Workers: workers, Seed: s.seed, Model: m, Policy: s.policy, NoHints: rng.IntN(2) == 0,
		Network: randomNetwork(rng, nodes), Compute: randomCompute(rng), Limits: limits, Broken: s.broken})
	if err != nil {
		return err
	}
	keys := []godwit.Key{godwit.Key(rng.IntN(40)), godwit.Key(rng.IntN(40))}
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		id := int(w.ID().Node)*workers + w.ID().Local
		rng := rand.New(rand.NewPCG(s.seed, uint64(id)+10))
		for range s.ops {
			i := rng.IntN(len(keys))
			if s.silent && rng.IntN(6) > 0 {
				i = int(w.ID().Node) % len(keys)
			}
			if err := s.act(ctx, w, rng, id, keys[i:][:1]); err != nil {
				return err
			}
		}
		for range 10 { // outlives its intents
			w.Advance()
		}
		return nil
	})
	if err == nil {
		s.sum = r.Sum()
	}
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}

func (s *program) act(ctx context.Context, w godwit.Worker, rng *rand.Rand, id int, key []godwit.Key) error {
	v := make([]float32, w.Model().Dim(key[0]))
	n := int(w.ID().Node)
	switch x := rng.IntN(20); {
	case x < 7:
		o := s.history.Begin(id, n, linear.Read, key[0], nil)
		err := w.Pull(ctx, key, v)
		s.history.End(o, v)
		return err
	case x < 13:
		if s.rule == (godwit.Add{}) {
			v[id] = 1 // a vector clock
		} else {
			for i := range v {
				v[i] = rng.Float32()
			}
		}
		o := s.history.Begin(id, n, linear.Push, key[0], v)
		err := w.Push(ctx, key, v)
		s.history.End(o, nil)
		return err
	case x == 13 && s.sets:
		for i := range v {
			v[i] = float32(rng.IntN(1 << 16))
		}
		o := s.history.Begin(id, n, linear.Set, key[0], v)
		err := w.Set(ctx, key, v)
		s.history.End(o, nil)
		return err
	case s.silent && x >= 14:
	case x == 14:
		return w.Localize(ctx, key)
	case x < 17:
		return w.Intent(key, w.Clock(), w.Clock()+1+godwit.Clock(rng.IntN(6)))
	}
	w.Advance()
	return nil
}

// judged runs programs and has them judged until the first error.
func judged(t *testing.T, seeds uint64, judge func(*linear.History) error, of func(seed uint64) *program) (sum node.Stats, ops int) {
	t.Helper()
	first := uint64(1)
	if *seedFlag != 0 {
		first, seeds = *seedFlag, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		s := of(seed)
		s.seed = seed
		err := s.run()
		if err == nil {
			err = judge(&s.history)
		}
		if err != nil {
			t.Fatalf("-seed %d (%s): %v", seed, s.policy.Name(), err)
		}
		sum.Add(s.sum)
		ops += s.history.Len()
	}
	t.Logf("%d operations, %d moves, %d replicas set up and %d dropped, %d of %d accesses remote", ops, sum.Moves, sum.Copies, sum.Drops, sum.Remote, sum.Local+sum.Replica+sum.Queued+sum.Remote)
	return sum, ops
}

func oneOf(seed uint64, ps ...placement.Policy) placement.Policy { return ps[seed%uint64(len(ps))] }

func atomic(rule godwit.Rule) func(*linear.History) error {
	return func(h *linear.History) error { return h.Atomic(rule) }
}

func TestConformanceC1KeysWithOneCopyAreAtomicWhileTheyMove(t *testing.T) {
	sum, ops := judged(t, 500, atomic(godwit.Add{}), func(seed uint64) *program {
		return &program{policy: oneOf(seed, placement.RelocateAll, placement.AdaptiveMoveOnly, placement.Static), rule: godwit.Add{}, sets: true, ops: 20}
	})
	if *seedFlag == 0 && (sum.Moves < 1000 || sum.Copies > 0 || ops < 10_000) {
		t.Errorf("%+v, %d operations: the test is vacuous", sum, ops)
	}
}

// Of tables that are not relaxed, keys that nobody announced have one copy, whatever nodes learn.
func TestConformanceC1KeysThatNobodyAnnouncedAreAtomic(t *testing.T) {
	sum, ops := judged(t, 300, atomic(godwit.Add{}), func(seed uint64) *program {
		return &program{policy: placement.Adaptive, rule: godwit.Add{}, sets: true, silent: true, ops: 60}
	})
	if *seedFlag == 0 && (sum.Moves < 100 || sum.Learned < 100 || sum.Copies > 0 || ops < 40_000) {
		t.Errorf("%+v, %d operations: the test is vacuous", sum, ops)
	}
}

func TestConformanceC3C4NodesSeeReplicatedKeysInOrder(t *testing.T) {
	sum, ops := judged(t, 1000, (*linear.History).InOrder, func(seed uint64) *program {
		return &program{policy: oneOf(seed, placement.Adaptive, placement.AdaptiveReplicateOnly, restless.Policy{}, placement.ReplicateAll), rule: godwit.Add{}, ops: 20}
	})
	if *seedFlag == 0 && (sum.Moves < 1000 || sum.Copies < 5000 || sum.Drops < 1000 || ops < 30_000) {
		t.Errorf("%+v, %d operations: the test is vacuous", sum, ops)
	}
}

// AdaGrad's steps depend on what came before, so only the order in which the
// owners applied the pushes gives these bits.
func TestConformanceC29UpdatesAtTheOwnerEqualTheRuleAppliedInSomeOrder(t *testing.T) {
	rule := optim.AdaGrad{LR: 0.5}
	other := 0 // histories that another rule does not explain
	judge := func(h *linear.History) error {
		if h.Atomic(optim.AdaGrad{LR: 0.4}) != nil {
			other++
		}
		return h.Atomic(rule)
	}
	sum, ops := judged(t, 200, judge, func(seed uint64) *program {
		return &program{policy: oneOf(seed, placement.RelocateAll, placement.AdaptiveMoveOnly), rule: rule, sets: true, ops: 15}
	})
	if *seedFlag == 0 && (sum.Moves < 500 || sum.Copies > 0 || ops < 6000 || other < 190) {
		t.Errorf("%+v, %d operations, %d histories that another rule does not explain: the test is vacuous", sum, ops, other)
	}
}

// The search rejects what a broken protocol does to these programs. (Rules that
// are for operations that nobody waited for are not here.)
func TestASearchForAnOrderNoticesABrokenProtocol(t *testing.T) {
	for _, m := range []struct {
		rule   string
		judge  func(*linear.History) error
		policy placement.Policy
		broken protocol.Broken
	}{
		{"M1, serve once", atomic(godwit.Add{}), placement.RelocateAll, protocol.Broken{ServeFrozen: true}},
		{"R2, updates in flight stay", (*linear.History).InOrder, placement.Adaptive, protocol.Broken{ForgetFlight: true}},
		{"R2, updates not sent stay", (*linear.History).InOrder, placement.Adaptive, protocol.Broken{ForgetUnsent: true}},
		{"R3, no stale refresh", (*linear.History).InOrder, restless.Policy{}, protocol.Broken{TakeStale: true}},
		{"R5, drain", (*linear.History).InOrder, placement.Adaptive, protocol.Broken{DropEarly: true}},
		{"R5, no writes while draining", (*linear.History).InOrder, placement.Adaptive, protocol.Broken{WriteDraining: true}},
		{"L1, copies of relaxed tables only", atomic(godwit.Add{}), placement.Adaptive, protocol.Broken{CopyStrict: true}},
		{"one update in flight", (*linear.History).InOrder, placement.Adaptive, protocol.Broken{ManyInFlight: true}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			const most = 2000
			for seed := uint64(1); seed <= most; seed++ {
				s := &program{seed: seed, policy: m.policy, rule: godwit.Add{}, silent: m.broken.CopyStrict, ops: 20, broken: m.broken}
				if s.run() != nil {
					continue // ended itself
				}
				if err := m.judge(&s.history); err != nil {
					t.Logf("seed %d: %.100v", seed, err)
					return
				}
			}
			t.Errorf("%d histories passed", most)
		})
	}
}
