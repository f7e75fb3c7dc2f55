package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

func TestConformanceC7BoundedStormsKeepTheBound(t *testing.T) {
	n := *seedsFlag / 5
	if testing.Short() {
		n /= 10
	}
	first := uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	var judged history.JudgedClocks
	blocked, parked, rebound := uint64(0), uint64(0), uint64(0)
	for seed := first; seed < first+n; seed++ {
		r, err := Storm(context.Background(), seed, StormConfig{Bounded: true})
		if err != nil {
			t.Fatalf("-seed %d (%s): %v", seed, r.Config, err)
		}
		judged.Add(r.Judged)
		s := r.Sum()
		blocked += s.Blocked
		parked += s.Parked
		rebound += uint64(r.Rebound)
	}
	t.Logf("%+v, %d calls were blocked, %d requests parked, %d bounds changed", judged, blocked, parked, rebound)
	if n >= 20 && (uint64(min(judged.Owed, judged.Edge, judged.Lacked)) < n || min(blocked, parked, rebound) < n) {
		t.Error("the test is vacuous")
	}
}

// Every rule of bounded staleness is needed: without it, storms fail, and soon.
func TestWithoutAnyOneRuleOfStalenessStormsFail(t *testing.T) {
	tested := map[string]bool{}
	for _, m := range []struct {
		rule   string
		broken StormConfig
	}{
		{"S1, deltas of replicas are acknowledged", StormConfig{Broken: protocol.Broken{FlushAtSend: true}}},
		{"S1, pushes are answered", StormConfig{BrokenBound: virtual.BrokenBound{SettleOpen: true}}},
		{"S2, what holders lack goes first", StormConfig{BrokenBound: virtual.BrokenBound{MarkFirst: true}}},
		{"S2, it goes to copies that are not used, too", StormConfig{BrokenBound: virtual.BrokenBound{SpareIdle: true}}},
		{"S2, replicas need the word of their owners", StormConfig{BrokenBound: virtual.BrokenBound{AnyCopy: true}}},
		{"S4, a barrier ends an era", StormConfig{BrokenBound: virtual.BrokenBound{KeepEra: true}}},
		{"dependencies", StormConfig{BrokenBound: virtual.BrokenBound{AfterAny: true}}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			off := reflect.ValueOf(m.broken.BrokenBound)
			for i := range off.NumField() {
				if off.Field(i).Bool() {
					tested[off.Type().Field(i).Name] = true
				}
			}
			const most = 500
			m.broken.Bounded = true
			for seed := uint64(1); seed <= most; seed++ {
				r, err := Storm(context.Background(), seed, m.broken)
				if err == nil {
					continue
				}
				t.Logf("seed %d (%s): %.300v", seed, r.Config, err)
				if r, err := Storm(context.Background(), seed, StormConfig{Bounded: true}); err != nil {
					t.Errorf("with the rule, too, seed %d (%s): %v", seed, r.Config, err)
				}
				return
			}
			t.Errorf("%d storms did not notice", most)
		})
	}
	for i := range reflect.TypeFor[virtual.BrokenBound]().NumField() {
		if name := reflect.TypeFor[virtual.BrokenBound]().Field(i).Name; !tested[name] && name != "PushesFirst" { // see preempt_test.go
			t.Errorf("no storm is without the rule that virtual.BrokenBound.%s switches off", name)
		}
	}
}

func boundModel(t testing.TB, dim int, tables ...godwit.Table) *godwit.Model {
	for i := range tables {
		tables[i].Name, tables[i].Rows, tables[i].Dim = fmt.Sprint("table ", i), 12, dim
	}
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// In any config, under any policy: with one worker stopped, the others read
// exactly s clocks further, and the end says whom they wait for.
func TestConformanceC7WithOneWorkerStoppedOthersGoExactlySClocksFurther(t *testing.T) {
	first, n := uint64(1), uint64(60)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+n; seed++ {
		rng := rand.New(rand.NewPCG(seed, 0x57a1e))
		nodes, workers, s, stop := 1+rng.IntN(4), 1+rng.IntN(3), rng.IntN(4), 1+rng.IntN(10)
		if nodes*workers == 1 {
			workers = 2
		}
		stopped := rng.IntN(nodes * workers)
		p := stormPolicy(rng)
		last := map[int]godwit.Clock{}
		c, err := New(Config{Nodes: nodes, Workers: workers, Seed: seed, Policy: p, Model: boundModel(t, nodes*workers, godwit.Table{Staleness: godwit.Within(s)}),
			Network: randomNetwork(rng, nodes), Compute: randomCompute(rng), Watch: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			id := int(w.ID().Node)*workers + w.ID().Local
			rng := rand.New(rand.NewPCG(seed, uint64(id)))
			for id != stopped || w.Clock() < godwit.Clock(stop) {
				keys := []godwit.Key{godwit.Key(rng.IntN(12)), godwit.Key(rng.IntN(12))}
				if rng.IntN(2) == 0 {
					if err := w.Intent(keys, w.Clock(), w.Clock()+2); err != nil {
						return err
					}
				}
				v := make([]float32, 2*nodes*workers)
				if err := w.Pull(ctx, keys, v); err != nil {
					return err
				}
				last[id] = w.Clock()
				if err := w.Push(ctx, keys, v); err != nil {
					return err
				}
				w.Advance()
			}
			return nil
		})
		want := fmt.Sprintf("worker %d.%d is at clock %d", stopped/workers, stopped%workers, stop)
		if !errors.Is(err, errStalled) || !strings.Contains(err.Error(), want) {
			t.Fatalf("-seed %d: under %s the run ends with %v, want %q", seed, p.Name(), err, want)
		}
		for id := range nodes * workers {
			if id != stopped && last[id] != godwit.Clock(stop+s) {
				t.Errorf("-seed %d: under %s, with staleness %d and a worker at clock %d, worker %d read at clock %d last", seed, p.Name(), s, stop, id, last[id])
			}
		}
	}
}

// A worker whose pushes cannot arrive makes as many steps as its window has
// clocks, and one more, and then waits for the oldest.
func TestConformanceC8AWindowBoundsTheWorkersOwnPushes(t *testing.T) {
	for _, d := range []int{0, 1, 4} {
		const end = 50 * time.Millisecond
		m := boundModel(t, 1, godwit.Table{Window: godwit.Within(d)}, godwit.Table{})
		c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: placement.Static, Compute: Compute{Step: 100 * time.Microsecond},
			Network: Network{Latency: 20 * time.Microsecond, Partitions: []Partition{{To: end, Nodes: []int{0}}}}})
		far := remote(c, m, 0)
		steps := godwit.Clock(-1)
		_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			if w.ID().Node == 1 {
				return nil
			}
			for range 20 {
				if _, err := w.PushAsync(ctx, []godwit.Key{far}, []float32{1}); err != nil {
					return err
				}
				if c.Now() < end {
					steps = w.Clock()
				}
				w.Advance()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps != godwit.Clock(d) {
			t.Errorf("with a window of %d clocks, the last push before the first one arrives is at clock %d", d, steps)
		}
		if s := c.Stats(0); s.Blocked == 0 || s.BlockedTime < end/2 {
			t.Errorf("%d calls were blocked for %v", s.Blocked, s.BlockedTime)
		}
	}
}

// While pushes are under way for longer than their window, PullIfLocal reads nothing, though the key is here, and a sample waits.
func TestConformanceC8ReadsWithoutAWaitKeepToTheWindow(t *testing.T) {
	const end = 50 * time.Millisecond
	m := boundModel(t, 1, godwit.Table{Window: godwit.Within(1)}, godwit.Table{})
	uniform := sampling.Spec{Name: "s", Table: 1, Dist: sampling.Uniform(m.Table(1).Rows), Scheme: sampling.Local{}}
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: placement.Static, Samplers: []sampling.Spec{uniform}, Compute: Compute{Step: 100 * time.Microsecond},
		Network: Network{Latency: 20 * time.Microsecond, Partitions: []Partition{{To: end, Nodes: []int{0}}}}})
	far, near := remote(c, m, 0), m.Key(1, 0)
	for c.Node(0).Home(near) != 0 {
		near++
	}
	_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		if w.ID().Node == 1 {
			return nil
		}
		h, err := w.PushAsync(ctx, []godwit.Key{far}, []float32{1})
		if err != nil {
			return err
		}
		id, err := w.PrepareSample(0, 1, 0, 10)
		if err != nil {
			return err
		}
		v := make([]float32, 1)
		for clock := range 3 {
			if got := w.PullIfLocal(near, v); got != (clock < 2) || c.Now() >= end {
				t.Errorf("at clock %d and %v, PullIfLocal returns %v with a window of one clock", clock, c.Now(), got)
			}
			w.Advance()
		}
		if err := w.PullSample(ctx, id, make([]godwit.Key, 1), v); err != nil {
			return err
		}
		if c.Now() < end {
			t.Errorf("at %v, before the push has arrived, there is a sample", c.Now())
		}
		if err := w.Wait(ctx, h); err != nil {
			return err
		}
		if !w.PullIfLocal(near, v) {
			t.Error("PullIfLocal reads nothing when all pushes are complete")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// remote returns a key of a table that node 0 is not the home of.
func remote(c *Cluster, m *godwit.Model, table int) godwit.Key {
	for row := uint64(0); ; row++ {
		if k := m.Key(table, row); c.Node(0).Home(k) != 0 {
			return k
		}
	}
}

// The idiom of Li et al.: what a step reads is asked for before it is made. The
// request waits at the owner, so the answer takes one way only once all are so
// far; others of the same worker overtake it.
func TestConformanceC8APullThatIsAskedForEarlyTakesOneWay(t *testing.T) {
	const way, step = 100 * time.Microsecond, 2 * time.Millisecond
	took := func(early bool) time.Duration {
		m := boundModel(t, 1, godwit.Table{Staleness: godwit.Within(8)})
		c := cluster(t, Config{Nodes: 3, Workers: 1, Seed: 1, Model: m, Policy: placement.Static, Network: Network{Latency: way}})
		k := remote(c, m, 0)
		home := c.Node(0).Home(k)
		var end time.Duration
		_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			id := w.ID().Node
			v, other := make([]float32, 1), make([]float32, 1)
			h, err := w.PullAfter(ctx, 1, []godwit.Key{k}, v)
			if err != nil {
				return err
			}
			for id != 0 && id != home && c.Now() < step { // a step takes its time
				if err := w.WaitSync(ctx); err != nil {
					return err
				}
			}
			if err := w.Push(ctx, []godwit.Key{k}, []float32{1}); err != nil {
				return err
			}
			if id == 0 {
				if err := w.Pull(ctx, []godwit.Key{k}, other); err != nil {
					return err
				}
				if c.Now() > step || other[0] == 3 {
					return fmt.Errorf("at %v, an independent read returns %v", c.Now(), other)
				}
			}
			w.Advance()
			if err := w.Wait(ctx, h); err != nil {
				return err
			}
			if !early && id == 0 {
				clear(v)
				if err := w.Pull(ctx, []godwit.Key{k}, v); err != nil {
					return err
				}
			}
			if id == 0 {
				end = c.Now()
			}
			if v[0] != 3 {
				return fmt.Errorf("reads %v, 3 workers pushed", v)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(int(home)); s.Parked < 2 {
			t.Errorf("%d requests waited at the owner: the test is vacuous", s.Parked)
		}
		return end
	}
	if e, l := took(true), took(false); l-e != 2*way {
		t.Errorf("%v, asked for afterwards %v, want two ways more", e, l)
	}
}

// A key that moves, time and again, while requests for it wait is found.
func TestConformanceC8RequestsThatWaitFindTheirKeyWhereverItMoves(t *testing.T) {
	m := boundModel(t, 1, godwit.Table{Staleness: godwit.Within(100)})
	c := cluster(t, Config{Nodes: 4, Workers: 1, Seed: 3, Model: m, Policy: placement.RelocateAll, Network: Network{Latency: 50 * time.Microsecond}, Watch: true})
	const rounds = 20
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(3, uint64(w.ID().Node)))
		keys := []godwit.Key{0, 1, 2, 3}
		for round := range rounds {
			v := make([]float32, len(keys))
			h, err := w.PullAfter(ctx, w.Clock()+1, keys, v)
			if err != nil {
				return err
			}
			for range 3 {
				if err := w.Localize(ctx, keys[rng.IntN(4):][:1]); err != nil {
					return err
				}
			}
			if err := w.Push(ctx, keys, []float32{1, 1, 1, 1}); err != nil {
				return err
			}
			w.Advance()
			if err := w.Wait(ctx, h); err != nil {
				return err
			}
			for _, x := range v {
				if x < float32(4*(round+1)) {
					return fmt.Errorf("reads %v after %d rounds of 4 workers", v, round+1)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Sum(); s.Parked < rounds || s.Moves < rounds || s.Forwards < rounds {
		t.Errorf("%+v: the test is vacuous", s)
	}
}

func TestAWorkerDoesNotWaitForItself(t *testing.T) {
	m := boundModel(t, 1, godwit.Table{Staleness: godwit.Within(1)}, godwit.Table{})
	c := cluster(t, Config{Nodes: 1, Workers: 1, Model: m})
	_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		v := make([]float32, 1)
		if _, err := w.PullAfter(ctx, 1, []godwit.Key{m.Key(1, 0)}, v); !errors.Is(err, godwit.ErrBound) || !strings.Contains(err.Error(), "table 1") {
			return fmt.Errorf("a pull after a clock of a table without a bound: %w", err)
		}
		h, err := w.PullAfter(ctx, 1, []godwit.Key{0}, v)
		if err != nil {
			return err
		}
		if err := w.Wait(ctx, h); !errors.Is(err, godwit.ErrBound) || !strings.Contains(err.Error(), "at clock 0") {
			return fmt.Errorf("waits for its own clock: %w", err)
		}
		w.Advance()
		return w.Wait(ctx, h)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A worker that gives a SyncAll up reads within the bound all the same, though its node had said that it rests.
func TestTheBoundHoldsBehindASyncAllThatWasGivenUp(t *testing.T) {
	const nodes, bound, steps = 2, 6, 40
	first, n := uint64(1), uint64(10)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for _, p := range []placement.Policy{placement.ReplicateAll, placement.Stale, placement.Adaptive} {
		gaveUp := 0
		for seed := first; seed < first+n; seed++ {
			m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 12, Dim: nodes, Staleness: godwit.Within(bound)})
			if err != nil {
				t.Fatal(err)
			}
			c, err := New(Config{Nodes: nodes, Workers: 1, Seed: seed, Policy: p, Model: m, Network: Network{Latency: 2 * time.Millisecond, Jitter: time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			keys := []godwit.Key{keyAt(c, 0)}
			var pushed [nodes][steps + 1]int // by worker: how often, before a clock
			_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
				id := int(w.ID().Node)
				v, one := make([]float32, nodes), make([]float32, nodes)
				one[id] = 1
				for i := range steps {
					if err := w.Intent(keys, w.Clock(), w.Clock()+20); err != nil {
						return err
					}
					if err := w.Pull(ctx, keys, v); err != nil {
						return err
					}
					now := max(0, int(w.Clock())-bound)
					for j, x := range v {
						if int(x) < pushed[j][now] {
							return fmt.Errorf("worker %d reads %v at clock %d, and worker %d had pushed %d times before clock %d", id, v, w.Clock(), j, pushed[j][now], now)
						}
					}
					if id == 0 {
						world{c, c.hosts[0]}.Sleep(time.Duration(3000+300*seed)*time.Microsecond, nil, nil)
					}
					if err := w.Push(ctx, keys, one); err != nil {
						return err
					}
					pushed[id][i+1] = i + 1
					if id == 1 && i%2 == 1 {
						short, cancel := context.WithCancel(ctx)
						c.after(c.hosts[1], 3*time.Millisecond, cancel)
						err := w.SyncAll(short)
						cancel()
						if err == nil {
							return errors.New("the SyncAll was not given up: the test is vacuous")
						}
						gaveUp++
					}
					w.Advance()
				}
				return nil
			})
			if err != nil {
				t.Errorf("-seed %d: %s: %v", seed, p.Name(), err)
			}
		}
		if want := int(n) * steps / 2; gaveUp != want {
			t.Errorf("%s: %d calls of SyncAll were given up, want %d", p.Name(), gaveUp, want)
		}
	}
}
