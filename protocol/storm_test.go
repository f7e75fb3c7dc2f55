package protocol

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/wire"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the storm of this seed only")
	seedsFlag = flag.Int("seeds", 60, "storms a configuration")
)

// storm runs random workers on a random schedule. The row of a key is a vector
// clock: worker w pushes +1 at coordinate w, so a pull tells exactly which
// pushes it contains.
type storm struct {
	c       *cluster
	rng     *rand.Rand
	workers []*stormWorker
	moves   bool // call Localize
}

type stormWorker struct {
	id    int
	n     *testNode
	left  int
	op    uint64             // of the request under way, 0: none
	kind  wire.Kind          // of the request under way
	key   godwit.Key         //
	count map[godwit.Key]int // own pushes
	seen  map[godwit.Key][]float32
	wants []godwit.Key // intents not ended
}

const stormKeys = 7

func newStorm(seed uint64, nodes int, policy placement.Policy, hints bool, broken Broken) *storm {
	rng := rand.New(rand.NewPCG(seed, 1))
	nw := nodes * 2
	model, err := godwit.NewModel(
		godwit.Table{Name: "a", Rows: stormKeys - 2, Dim: nw},
		godwit.Table{Name: "b", Rows: 2, Dim: nw, Rule: counting{}})
	if err != nil {
		panic(err)
	}
	s := &storm{c: newCluster(nodes, model, policy, hints, broken), rng: rng, moves: rng.IntN(2) == 0}
	for i := range nw {
		s.workers = append(s.workers, &stormWorker{id: i, n: s.c.nodes[i%nodes], left: 40,
			count: map[godwit.Key]int{}, seen: map[godwit.Key][]float32{}})
	}
	for _, n := range s.c.nodes {
		for k := godwit.Key(0); k < stormKeys; k++ {
			if policy.Everywhere(n.cfg.hot(k)) {
				n.Hold(n, k)
			}
		}
	}
	return s
}

// counting is a rule with state: it counts the pushes of a row.
type counting struct{ godwit.Add }

func (counting) Name() string          { return "counting" }
func (counting) StateLen(int) int      { return 1 }
func (counting) InitState(s []float32) { s[0] = 0 }
func (c counting) Apply(v, s, p []float32) {
	c.Add.Apply(v, nil, p)
	s[0]++
}

func (s *storm) run() error {
	for i := 0; ; i++ {
		if done, err := s.step(); err != nil {
			return err
		} else if done {
			break
		}
		if i > 200_000 {
			return fmt.Errorf("the storm does not end: a request is never answered")
		}
	}
	for _, w := range s.workers {
		for _, k := range w.wants {
			w.n.Unwant(w.n, k)
		}
	}
	if err := s.c.settle(s.rng); err != nil {
		return err
	}
	if err := s.c.check(); err != nil {
		return err
	}
	return s.totals()
}

// step does one thing: deliver a record, run a round, or let a worker go on.
func (s *storm) step() (done bool, err error) {
	ps := s.c.busy()
	switch x := s.rng.IntN(10); {
	case x < 5 && len(ps) > 0:
		return false, s.c.deliver(ps[s.rng.IntN(len(ps))])
	case x == 5:
		n := s.c.nodes[s.rng.IntN(len(s.c.nodes))]
		n.Round(n)
		return false, nil
	}
	w := s.workers[s.rng.IntN(len(s.workers))]
	if w.op != 0 {
		return false, s.answers(w)
	}
	if w.left > 0 {
		w.left--
		return false, s.act(w)
	}
	for _, w := range s.workers {
		if w.left > 0 || w.op != 0 {
			if len(ps) == 0 {
				for _, n := range s.c.nodes {
					n.Round(n)
				}
			}
			return false, nil
		}
	}
	return true, nil
}

func (s *storm) act(w *stormWorker) error {
	k := godwit.Key(s.rng.IntN(stormKeys))
	switch x := s.rng.IntN(10); {
	case x < 4:
		dst := make([]float32, len(s.workers))
		if w.n.Pull(k, dst) != Elsewhere {
			return s.saw(w, k, dst)
		}
		s.request(w, wire.Pull, k, nil)
	case x < 7:
		p := make([]float32, len(s.workers))
		p[w.id] = 1
		if w.n.Push(k, p) != Elsewhere {
			w.count[k]++
			return nil
		}
		s.request(w, wire.Push, k, p)
	case x == 7 && s.moves:
		s.request(w, wire.Localize, k, nil)
	case x < 9:
		w.wants = append(w.wants, k)
		w.n.Want(w.n, k)
	default:
		if len(w.wants) > 0 {
			i := s.rng.IntN(len(w.wants))
			w.n.Unwant(w.n, w.wants[i])
			w.wants = append(w.wants[:i], w.wants[i+1:]...)
		}
	}
	return nil
}

func (s *storm) request(w *stormWorker, kind wire.Kind, k godwit.Key, vals []float32) {
	w.op, w.kind, w.key = uint64(w.id+1), kind, k
	w.n.Request(w.n, &wire.Record{Kind: kind, Key: k, Op: w.op, Vals: vals})
}

// answers takes the reply to a worker's request, if it is there.
func (s *storm) answers(w *stormWorker) error {
	for i := range w.n.replies {
		r := w.n.replies[i]
		if r.Op != w.op {
			continue
		}
		w.n.replies = append(w.n.replies[:i], w.n.replies[i+1:]...)
		w.op = 0
		switch w.kind {
		case wire.Pull:
			return s.saw(w, w.key, r.Vals)
		case wire.Push:
			w.count[w.key]++
		}
		return nil
	}
	return nil
}

// saw judges one read: it contains the worker's own pushes, all of them and
// none twice, and nothing that the worker saw before is missing.
func (s *storm) saw(w *stormWorker, k godwit.Key, v []float32) error {
	if int(v[w.id]) != w.count[k] {
		return fmt.Errorf("worker %d at node %d reads key %d with %v of its own pushes, it made %d", w.id, w.n.id, k, v[w.id], w.count[k])
	}
	for i, x := range w.seen[k] {
		if v[i] < x {
			return fmt.Errorf("worker %d at node %d reads key %d as %v after it was %v", w.id, w.n.id, k, v, w.seen[k])
		}
	}
	w.seen[k] = append([]float32(nil), v...)
	return nil
}

// totals compares the main copies with what was pushed.
func (s *storm) totals() error {
	for k := godwit.Key(0); k < stormKeys; k++ {
		var row []float32
		for _, n := range s.c.nodes {
			if n.holding(k) == owner {
				row = n.row(k)
			}
		}
		all := 0
		for i, w := range s.workers {
			all += w.count[k]
			if row == nil && w.count[k] > 0 || row != nil && int(row[i]) != w.count[k] {
				return fmt.Errorf("key %d ends as %v, worker %d pushed %d times", k, row, i, w.count[k])
			}
		}
		if len(row) > len(s.workers) && int(row[len(s.workers)]) != all {
			return fmt.Errorf("key %d: state counts %v pushes, there were %d", k, row[len(s.workers)], all)
		}
	}
	return nil
}

func (s *storm) stats() (t Stats) {
	for _, n := range s.c.nodes {
		t.MovesIn += n.Stats.MovesIn
		t.Copies += n.Stats.Copies
		t.Drops += n.Stats.Drops
		t.Forwards += n.Stats.Forwards
		t.Waited += n.Stats.Waited
		t.Deltas += n.Stats.Deltas
		t.Refreshes += n.Stats.Refreshes
		t.Acks += n.Stats.Acks
		t.MaxHops = max(t.MaxHops, n.Stats.MaxHops)
	}
	return t
}

func TestNoUpdateIsLostOrDoubledAndEveryWorkerReadsItsOwnWritesWhateverMoves(t *testing.T) {
	for _, name := range placement.Names() {
		policy, _ := placement.ByName(name)
		for _, nodes := range []int{1, 2, 3, 5} {
			for _, hints := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d nodes/hints %v", name, nodes, hints), func(t *testing.T) {
					var sum Stats
					for i := range *seedsFlag {
						seed := uint64(i + 1)
						if *seedFlag != 0 {
							seed = *seedFlag
						}
						s := newStorm(seed, nodes, policy, hints, Broken{})
						if err := s.run(); err != nil {
							t.Fatalf("-seed %d: %v", seed, err)
						}
						x := s.stats()
						sum.MovesIn += x.MovesIn
						sum.Copies += x.Copies
						sum.Forwards += x.Forwards
						sum.Waited += x.Waited
						sum.MaxHops = max(sum.MaxHops, x.MaxHops)
						if *seedFlag != 0 {
							return
						}
					}
					if nodes > 2 && policy.OnIntent(false) == placement.Move && (sum.MovesIn == 0 || sum.Waited == 0 || sum.Forwards == 0) {
						t.Errorf("nothing was stressed: %+v", sum)
					}
					if nodes > 2 && name == "adaptive" && (sum.MovesIn == 0 || sum.Copies == 0 || sum.Waited == 0) {
						t.Errorf("nothing was stressed: %+v", sum)
					}
				})
			}
		}
	}
}

func TestEveryBrokenRuleIsNoticed(t *testing.T) {
	for _, m := range []struct {
		name   string
		broken Broken
		policy string
	}{
		{"drop at send", Broken{DropAtSend: true}, "relocate"},
		{"serve tentative", Broken{ServeTentative: true}, "adaptive"},
		{"forget flight", Broken{ForgetFlight: true}, "adaptive"},
		{"drop early", Broken{DropEarly: true}, "adaptive"},
	} {
		t.Run(m.name, func(t *testing.T) {
			p, _ := placement.ByName(m.policy)
			for seed := uint64(1); seed < 3000; seed++ {
				err := broken(newStorm(seed, 3, p, seed%2 == 0, m.broken))
				if err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("3000 storms did not notice")
		})
	}
}

// broken runs a storm; a broken invariant may also end it by a panic.
func broken(s *storm) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s.run()
}
