package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// These tests hold statements of docs/conformance.md, each with what must have
// happened for it to mean something.

func everyPolicy() []placement.Policy {
	all := []placement.Policy{restless.Policy{}}
	for _, name := range placement.Names() {
		p, _ := placement.ByName(name)
		all = append(all, p)
	}
	return all
}

// On a network without load, an update is at every replica after one round and
// a way up, and a way down with one of the eight rounds that follow: a copy that
// is not written where it is gets its refreshes that rarely.
func TestConformanceC9AnUpdateIsSoonAtAllReplicas(t *testing.T) {
	const way, pause = 50 * time.Microsecond, 200 * time.Microsecond
	const key, updates = godwit.Key(3), 100
	c := cluster(t, Config{Nodes: 4, Workers: 1, Model: model(t, 10, 1), Policy: placement.ReplicateAll,
		Network: Network{Latency: way}, Compute: Compute{Key: 20 * time.Microsecond}})
	var pushed [updates + 1]time.Duration
	var late []time.Duration
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		v, saw := make([]float32, 1), 0
		for i := 0; saw < updates; i++ {
			if w.ID().Node == 2 && i%7 == 6 {
				if err := w.Push(ctx, []godwit.Key{key}, []float32{1}); err != nil {
					return err
				}
				saw++
				pushed[saw] = c.Now()
				continue
			}
			if !w.PullIfLocal(key, v) {
				return fmt.Errorf("the key is not replicated at node %d", w.ID().Node)
			}
			for saw < int(v[0]) {
				saw++
				late = append(late, c.Now()-pushed[saw])
			}
		}
		return nil
	})
	slices.Sort(late)
	t.Logf("updates are at other nodes after %v, %v (median) … %v", late[0], late[len(late)/2], late[len(late)-1])
	if most := 9*pause + 2*way + 200*time.Microsecond; late[len(late)-1] > most {
		t.Errorf("an update took %v to a replica, want at most %v", late[len(late)-1], most)
	}
	if len(late) != 3*updates || late[0] < way || r.Sum().Deltas == 0 {
		t.Errorf("%d updates were seen elsewhere, the first after %v: the test is vacuous", len(late), late[0])
	}
}

// Workers have keys of their own, and share some; they announce all of them
// well ahead.
func TestConformanceC13AnnouncedKeysAreHereInTimeAndGoAfterwards(t *testing.T) {
	const steps, ahead, nodes = 300, 60, 4
	c := cluster(t, Config{Nodes: nodes, Workers: 2, Seed: 1, Model: model(t, 5000, 4), Policy: placement.AdaPM, Watch: true,
		Network: Network{Latency: 25 * time.Microsecond, Jitter: 10 * time.Microsecond, Bandwidth: 1e10}, Compute: Compute{Step: 100 * time.Microsecond, Spread: 0.2}})
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		id := int(w.ID().Node)*2 + w.ID().Local
		rng := rand.New(rand.NewPCG(7, uint64(id)))
		var batches [][]godwit.Key
		for i := range steps + ahead {
			own, shared := godwit.Key(100+id+8*rng.IntN(600)), godwit.Key(rng.IntN(100))
			batches = append(batches, []godwit.Key{own, shared})
			if err := w.Intent(batches[i], godwit.Clock(i), godwit.Clock(i+1)); err != nil {
				return err
			}
			if i < ahead {
				continue
			}
			b := batches[i-ahead]
			v := make([]float32, 8)
			if err := w.Pull(ctx, b, v); err != nil {
				return err
			}
			if err := w.Push(ctx, b, v); err != nil {
				return err
			}
			w.Advance()
		}
		for w.Clock() < steps+ahead {
			w.Advance()
		}
		return nil
	})
	sum := r.Sum()
	here, all := sum.Local+sum.Replica, sum.Local+sum.Replica+sum.Queued+sum.Remote
	t.Logf("%d of %d accesses at once, %d moves, %d replicas", here, all, sum.Moves, sum.Copies)
	if float64(here) < 0.98*float64(all) { // the first steps are not announced ahead
		t.Errorf("%d of %d accesses found their key here, want 98 of 100", here, all)
	}
	if sum.Moves < 1000 || sum.Copies < 500 {
		t.Errorf("%d moves and %d replicas: the test is vacuous", sum.Moves, sum.Copies)
	}
	if sum.Replicas > 0 {
		t.Errorf("%d of %d replicas are left", sum.Replicas, sum.Copies)
	}
	if err := c.unwanted(); err != nil {
		t.Error(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// A key moves to the only node that wants it, and is replicated where several
// do; it does not leave a node whose intent is active.
func TestConformanceC13AKeyThatIsWantedHereStaysHere(t *testing.T) {
	const key = godwit.Key(7)
	c := cluster(t, Config{Nodes: 3, Workers: 1, Model: model(t, 10, 1), Policy: placement.AdaPM, Network: Network{Latency: time.Millisecond}, Watch: true})
	seen := make([][]string, 3)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		n := int(w.ID().Node)
		// Nodes 0, 1 and 2 want the key from clocks 0, 10 and 20 on, until 30.
		start := godwit.Clock(10 * n)
		for w.Clock() < 40 {
			if w.Clock() == start {
				if err := w.Intent([]godwit.Key{key}, start, 30); err != nil {
					return err
				}
			}
			if err := w.WaitSync(ctx); err != nil {
				return err
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if w.Clock() == 5 || w.Clock() == 15 || w.Clock() == 25 {
				seen[n] = append(seen[n], c.hosts[n].virtual.Holding(key).State)
			}
			w.Advance()
		}
		return nil
	})
	if want := [][]string{{"owner", "owner", "owner"}, {"absent", "replica", "replica"}, {"absent", "absent", "replica"}}; !slices.EqualFunc(seen, want, slices.Equal) {
		t.Errorf("nodes had the key as %q, want %q", seen, want)
	}
}

// The same workload ends in the same model, whatever manages it, with location
// hints and without, whether intents are acted on in time or at once.
func TestConformanceC14EveryPolicyEndsInTheSameModel(t *testing.T) {
	type outcome struct {
		rows []float32
		sum  node.Stats
	}
	m := stormModel(6, true, 0, false, nil, nil)
	outcomes := map[string]outcome{}
	want := make([]float32, m.Keys())
	const ways = 3
	policies := everyPolicy()
	for i, p := range slices.Repeat(policies, ways) {
		name := p.Name()
		noHints, eager := i/len(policies) == 1, i/len(policies) == 2
		if noHints {
			name += " without hints"
		} else if eager {
			name += ", eager"
		}
		c := cluster(t, Config{Nodes: 3, Workers: 2, Seed: 5, Model: m, Policy: p, NoHints: noHints, Eager: eager, Watch: true,
			Network: Network{Latency: 30 * time.Microsecond, Jitter: 100 * time.Microsecond}, Compute: Compute{Step: 50 * time.Microsecond}})
		r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			rng := rand.New(rand.NewPCG(11, uint64(w.ID().Node)<<8|uint64(w.ID().Local)))
			for range 200 {
				k := godwit.Key(rng.Uint64N(m.Keys()))
				push := make([]float32, m.Dim(k))
				push[0] = float32(1 + rng.IntN(9))
				table, _ := m.Locate(k)
				switch {
				case i > 0:
				case table == mostTable:
					want[k] = max(want[k], push[0])
				default:
					want[k] += push[0]
				}
				if err := w.Intent([]godwit.Key{k}, w.Clock()+2, w.Clock()+5); err != nil {
					return err
				}
				if rng.IntN(10) == 0 {
					if err := w.Localize(ctx, []godwit.Key{k}); err != nil {
						return err
					}
				}
				if err := w.Push(ctx, []godwit.Key{k}, push); err != nil {
					return err
				}
				w.Advance()
			}
			for range 10 {
				w.Advance()
			}
			return nil
		})
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		o := outcome{sum: r.Sum()}
		for k := godwit.Key(0); m.Has(k); k++ {
			o.rows = append(o.rows, c.Value(k)[0])
		}
		outcomes[name] = o
	}
	if want := ways * len(policies); len(outcomes) != want {
		t.Errorf("%d outcomes, want %d", len(outcomes), want)
	}
	for name, o := range outcomes {
		if !slices.Equal(o.rows, want) {
			t.Errorf("%s ends in %v, want %v", name, o.rows, want)
		}
	}
	static, move, copies, adaptive := outcomes["static"].sum, outcomes["relocate"].sum, outcomes["replicate"].sum, outcomes["adaptive"].sum
	if static.Moves+static.Copies > 0 || move.Moves < 100 || copies.Copies == 0 || adaptive.Moves < 20 || adaptive.Copies < 20 {
		t.Errorf("%+v, %+v, %+v, %+v: the test is vacuous", static, move, copies, adaptive)
	}
}

// Calls of any keys of models of any size on any number of nodes reach exactly
// these keys, the first and the last among them.
func TestConformanceC25EveryKeyOfACallIsServedOnceWhateverTheNumbers(t *testing.T) {
	calls := 0
	for _, nodes := range []int{1, 2, 3, 5, 8} {
		for _, rows := range []uint64{1, 2, 3, 7, 64, 101} {
			c := cluster(t, Config{Nodes: nodes, Workers: 1, Model: model(t, rows, 2), Policy: placement.Static, Network: Network{Latency: time.Microsecond}})
			_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
				rng := rand.New(rand.NewPCG(rows, uint64(w.ID().Node)))
				var keys []godwit.Key
				for k := range rows {
					keys = append(keys, godwit.Key(k))
				}
				rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				push := make([]float32, 2*rows)
				for i, k := range keys {
					push[2*i], push[2*i+1] = 1, float32(k)
				}
				if err := w.Push(ctx, keys, push); err != nil {
					return err
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				slices.Reverse(keys)
				vals := make([]float32, 2*rows)
				if err := w.Pull(ctx, keys, vals); err != nil {
					return err
				}
				for i, k := range keys {
					if vals[2*i] != float32(nodes) || vals[2*i+1] != float32(nodes)*float32(k) {
						return fmt.Errorf("key %d of %d on %d nodes is %v", k, rows, nodes, vals[2*i:2*i+2])
					}
				}
				calls++
				return w.Pull(ctx, nil, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := 6 * (1 + 2 + 3 + 5 + 8); calls != want {
		t.Errorf("%d calls were judged, want %d", calls, want)
	}
}

// odd gives rows a first value that tells seed and key.
type odd struct{}

func (odd) Name() string { return "odd" }

func (odd) Init(v []float32, seed uint64, k godwit.Key) {
	for i := range v {
		v[i] = float32(seed*1000 + uint64(k)*10 + uint64(i))
	}
}

func TestConformanceC30RowsBeginAsSeedAndKeySayWhoeverComesFirst(t *testing.T) {
	const keys, dim = 20, 3
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: dim, Init: odd{}, Hot: func(row uint64) float64 { return float64(row) }})
	if err != nil {
		t.Fatal(err)
	}
	remote := uint64(0)
	for _, nodes := range []int{1, 2, 5} {
		for _, p := range everyPolicy() {
			c := cluster(t, Config{Nodes: nodes, Workers: 2, Seed: 3, Model: m, Policy: p, Watch: true, Network: Network{Latency: 20 * time.Microsecond, Jitter: 50 * time.Microsecond}})
			r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
				for k := range godwit.Key(keys) { // all workers at once
					if k%3 == 0 {
						if err := w.Intent([]godwit.Key{k}, w.Clock(), w.Clock()+1); err != nil {
							return err
						}
					}
					got, want := make([]float32, dim), make([]float32, dim)
					if err := w.Pull(ctx, []godwit.Key{k}, got); err != nil {
						return err
					}
					if (odd{}).Init(want, 3, k); !slices.Equal(got, want) {
						return fmt.Errorf("key %d begins as %v, want %v", k, got, want)
					}
					w.Advance()
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				return w.Push(ctx, []godwit.Key{4}, []float32{1, 1, 1})
			})
			remote += r.Sum().Remote
			if err := c.Check(); err != nil {
				t.Errorf("%s, %d nodes: %v", p.Name(), nodes, err)
			}
			if v := c.Value(4); v[0] != float32(3040+2*nodes) {
				t.Errorf("%s, %d nodes: key 4 is %v after %d pushes", p.Name(), nodes, v, 2*nodes)
			}
		}
	}
	if remote < 500 {
		t.Errorf("%d remote accesses: the test is vacuous", remote)
	}
}
