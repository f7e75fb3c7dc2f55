package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/placement"
)

// bounded is a model of vector clocks whose reads are bounded.
func bounded(t testing.TB, workers, s int) *godwit.Model {
	return modelOf(t, godwit.Table{Name: "t", Rows: 12, Dim: workers, Staleness: godwit.Within(s)})
}

// policies that make replicas, and that do not.
var someOfEach = []placement.Policy{placement.Static, placement.RelocateAll, placement.ReplicateAll, placement.Adaptive}

// With one worker stopped, the others read s clocks further and not once more,
// and say whom they wait for.
func TestConformanceC7WithOneWorkerStoppedOthersGoExactlySClocksFurther(t *testing.T) {
	for _, policy := range someOfEach {
		for _, s := range []int{0, 1, 3} {
			t.Run(policy.Name()+"/"+godwit.Within(s).String(), func(t *testing.T) {
				const nodes, workers, stopped, at = 3, 2, 3, 4 // worker 1.1 stops at clock 4
				c := local(t, nodes, Config{Workers: workers, Policy: policy, Model: bounded(t, nodes*workers, s)})
				cluster := c
				var reached sync.WaitGroup
				reached.Add(nodes*workers - 1)
				ended := make(chan struct{})
				each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
					id := int(w.ID().Node)*workers + w.ID().Local
					keys := []godwit.Key{godwit.Key(id), godwit.Key(rng.IntN(12))}
					push := make([]float32, 2*nodes*workers)
					push[id] = 1
					vals := make([]float32, 2*nodes*workers)
					for c := godwit.Clock(0); ; c++ {
						if id == stopped && c == at {
							<-ended
							return nil
						}
						ctx, cancel := ctx, func() {}
						if c > at+godwit.Clock(s) {
							reached.Done()
							ctx, cancel = context.WithCancel(ctx)
							go func() {
								reached.Wait() // all others are as far, too
								for ctx.Err() == nil && !heldUpBy(cluster.Nodes[w.ID().Node], w.ID().Local, "worker 1.1 is at clock 4") {
									time.Sleep(100 * time.Microsecond)
								}
								time.Sleep(10 * time.Millisecond)
								cancel()
							}()
						}
						err := w.Pull(ctx, keys, vals)
						cancel()
						if c > at+godwit.Clock(s) {
							var o *godwit.OpError
							if !errors.As(err, &o) || !errors.Is(err, context.Canceled) || o.Peer != 1 ||
								!strings.Contains(err.Error(), "worker 1.1 is at clock 4") {
								t.Errorf("%v reads at clock %d: %v", w.ID(), c, err)
							}
							if w.PullIfLocal(keys[0], vals[:nodes*workers]) {
								t.Errorf("%v reads at clock %d what is here", w.ID(), c)
							}
							if o := cluster.Nodes[w.ID().Node].Stats(); o.Blocked == 0 || o.BlockedTime == 0 {
								t.Errorf("%d calls of the node were blocked for %v", o.Blocked, o.BlockedTime)
							}
							if id == 0 {
								reached.Wait()
								time.Sleep(50 * time.Millisecond)
								close(ended)
							}
							return nil
						}
						if err != nil {
							return err
						}
						if err := w.Push(ctx, keys, push); err != nil {
							return err
						}
						w.Advance()
					}
				})
			})
		}
	}
}

// heldUp reports whether a worker waits for the bound.
func heldUp(n *Node, worker int) bool {
	_, waits := n.bound.Waits(n.bound.Waiter(worker))
	return waits
}

// heldUpBy reports whether a worker waits for the bound and its node knows for
// whom. Word of what others have done may take longer than its call.
func heldUpBy(n *Node, worker int, whom string) bool {
	b := n.bound
	need, waits := b.Waits(b.Waiter(worker))
	if !waits {
		return false
	}
	who, _ := b.Behind(need)
	return strings.Contains(who, whom)
}

// ones is a push of 1 at a coordinate of each of n rows.
func ones(n, dim, at int) []float32 {
	v := make([]float32, n*dim)
	for i := range n {
		v[i*dim+at] = 1
	}
	return v
}

// Real workers at random speeds, with all that moves and replicates keys: no
// read lacks what the bound says, also across barriers after uneven steps.
func TestConformanceC7ReadsContainAllOlderUpdates(t *testing.T) {
	const workers, rows = 2, 8
	var mu sync.Mutex
	var judged history.JudgedClocks
	var blocked uint64
	variants(t, []int{1, 3}, func(t *testing.T, nodes int, cfg Config) {
		s := rand.New(rand.NewPCG(*seed, uint64(nodes))).IntN(3)
		dim := nodes * workers
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: dim, Staleness: godwit.Within(s), Hot: first})
		c := local(t, nodes, cfg)
		clocks := history.NewClocks(dim)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			id := int(w.ID().Node)*workers + w.ID().Local
			note := func(f func()) { mu.Lock(); f(); mu.Unlock() }
			v := make([]float32, 2*dim)
			var hs []godwit.Handle
			for range 3 { // eras
				for range 5 + rng.IntN(25) {
					keys := []godwit.Key{godwit.Key(rng.IntN(rows)), godwit.Key(rng.IntN(rows))}
					if err := w.Intent(keys[:1], w.Clock(), w.Clock()+3); err != nil {
						return err
					}
					owed := clocks.Now(id).Back(s) // of which this worker alone writes its own part
					if err := w.Pull(ctx, keys, v); err != nil {
						return err
					}
					var err error
					note(func() {
						for i, k := range keys {
							if e := clocks.Read(k, v[i*dim:(i+1)*dim], owed); e != nil {
								err = e
							}
							clocks.Push(id, k)
						}
					})
					if err != nil {
						return err
					}
					h, err := w.PushAsync(ctx, keys, ones(2, dim, id))
					if err != nil {
						return err
					}
					hs = append(hs, h)
					if rng.IntN(4) == 0 {
						if h, err = w.LocalizeAsync(ctx, keys); err != nil {
							return err
						}
						hs = append(hs, h)
					}
					if rng.IntN(10) == 0 {
						time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
					}
					note(func() { clocks.Advance(id) })
					w.Advance()
				}
				note(func() { clocks.Barrier(id) })
				if err := w.Barrier(ctx); err != nil {
					return err
				}
			}
			if err := w.Wait(ctx, hs...); err != nil {
				return err
			}
			return w.Barrier(ctx)
		})
		mu.Lock()
		judged.Add(clocks.Judged)
		mu.Unlock()
		blocked += sum(c).Blocked
	})
	t.Logf("%+v, %d calls were blocked", judged, blocked)
	if judged.Owed < 1000 || judged.Edge < 100 || judged.Lacked < 100 || blocked < 100 {
		t.Error("the test is vacuous")
	}
}

// Each step adds to every cell a whole number made of what all cells are. With
// bulk-synchronous reads, one clock to read and one to write, the outcome is
// that of one worker that makes all steps itself, whatever happens in between.
func TestBulkSynchronousRunsEqualTheSequentialOneBitForBit(t *testing.T) {
	const workers, rows, steps = 2, 5, 12
	change := func(at []float32, id, step, row int) float32 {
		h := uint32(id*7919 + step*104729 + row*31)
		for _, x := range at {
			h = h*16777619 ^ uint32(int32(x))
		}
		return float32(int(h%2001) - 1000)
	}
	variants(t, []int{1, 3}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 1, Staleness: godwit.BulkSynchronous, Hot: first})
		want := make([]float32, rows)
		for step := range steps {
			next := append([]float32(nil), want...)
			for id := range nodes * workers {
				for r := range next {
					next[r] += change(want, id, step, r)
				}
			}
			want = next
		}
		keys := make([]godwit.Key, rows)
		for i := range keys {
			keys[i] = godwit.Key(i)
		}
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			id := int(w.ID().Node)*workers + w.ID().Local
			at, push, any := make([]float32, rows), make([]float32, rows), make([]float32, 1)
			for step := range steps {
				if err := w.Intent(keys, w.Clock(), w.Clock()+1); err != nil {
					return err
				}
				if err := w.Pull(ctx, keys, at); err != nil {
					return err
				}
				for r := range push {
					push[r] = change(at, id, step, r)
				}
				w.Advance()
				if err := w.Pull(ctx, keys[:1], any); err != nil { // all have read
					return err
				}
				if _, err := w.PushAsync(ctx, keys, push); err != nil {
					return err
				}
				w.Advance()
			}
			if err := w.Pull(ctx, keys, at); err != nil {
				return err
			}
			for r := range at {
				if at[r] != want[r] {
					return fmt.Errorf("ends with %v, one worker with %v", at, want)
				}
			}
			return w.Barrier(ctx)
		})
	})
}

// Who is in a barrier or has finished holds nobody up; what it does afterwards
// counts as later than anything before the barrier.
func TestWorkersThatWaitInABarrierOrHaveFinishedHoldNobodyUp(t *testing.T) {
	for _, finish := range []bool{false, true} {
		c := local(t, 2, Config{Workers: 2, Model: bounded(t, 4, 0)})
		var read atomic.Int32
		each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
			id := int(w.ID().Node)*2 + w.ID().Local
			v := make([]float32, 4)
			if id == 3 { // makes no step
				if finish {
					w.Finish()
					w.Finish() // once more changes nothing
				}
			} else {
				for range 5 + 10*id { // as many as nobody else
					must(t, w.Push(ctx, []godwit.Key{1}, ones(1, 4, id)))
					w.Advance()
					if err := w.Pull(ctx, []godwit.Key{1}, v); err != nil {
						return err
					}
				}
				read.Add(1)
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if n := read.Load(); n != 3 {
				return fmt.Errorf("left the barrier when %d workers had read", n)
			}
			if err := w.Pull(ctx, []godwit.Key{1}, v); err != nil {
				return err
			}
			if !slices.Equal(v, []float32{5, 15, 25, 0}) {
				return fmt.Errorf("reads %v after the barrier", v)
			}
			return w.Barrier(ctx)
		})
	}
}

// Who has not begun is at clock 0: it may still push there.
func TestAWorkerThatHasNotBegunHoldsUpOthersWhoGoBeyondTheBound(t *testing.T) {
	c := local(t, 2, Config{Workers: 1, Model: bounded(t, 2, 2)})
	w, idle := c.Nodes[0].Worker(0), c.Nodes[1].Worker(0)
	ctx, v := background(t), make([]float32, 2)
	for range 2 {
		w.Advance()
	}
	must(t, w.Pull(ctx, []godwit.Key{0}, v))
	w.Advance()
	const whom = "worker 1.0 is at clock 0"
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for short.Err() == nil && !heldUpBy(c.Nodes[w.ID().Node], w.ID().Local, whom) {
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(20 * time.Millisecond)
		cancel()
	}()
	if err := w.Pull(short, []godwit.Key{0}, v); err == nil || !strings.Contains(err.Error(), whom) {
		t.Errorf("reads three clocks ahead of a worker that has not begun: %v", err)
	}
	must(t, idle.Push(ctx, []godwit.Key{0}, []float32{0, 1}))
	idle.Advance()
	must(t, w.Pull(ctx, []godwit.Key{0}, v))
	if v[1] != 1 {
		t.Errorf("reads %v, without the other's first push", v)
	}
	w.Advance()
	idle.Finish()
	must(t, w.Pull(ctx, []godwit.Key{0}, v))
}

// A node that closes lets the others go on, who have to close as well.
func TestANodeThatClosesHoldsNobodyUp(t *testing.T) {
	ctx := background(t)
	c, err := Local(ctx, 2, Config{Workers: 1, Model: bounded(t, 2, 0)})
	must(t, err)
	closed := make(chan error, 1)
	go func() { closed <- c.Nodes[1].Close(ctx) }()
	w, v := c.Nodes[0].Worker(0), make([]float32, 2)
	for range 5 {
		w.Advance()
		must(t, w.Pull(ctx, []godwit.Key{0}, v))
	}
	must(t, c.Close(ctx))
	must(t, <-closed)
}

// Half a second of disagreement would show as a hang or as a read too far ahead.
func TestABoundThatChangesHoldsForAllNodesWhenTheCallReturns(t *testing.T) {
	c := local(t, 3, Config{Workers: 1, Model: bounded(t, 3, 0)})
	ctx, v, key := background(t), make([]float32, 3), []godwit.Key{0}
	w := c.Nodes[2].Worker(0)
	for range 3 {
		w.Advance()
	}
	read := make(chan error, 1)
	go func() { read <- w.Pull(ctx, key, make([]float32, 3)) }()
	eventually(t, "node 2 waits for a bound", func() bool {
		_, waits := c.Nodes[2].bound.Waits(c.Nodes[2].bound.Waiter(0))
		return waits
	})
	must(t, c.Nodes[0].SetStaleness(ctx, 0, godwit.Within(2)))
	if n := c.Nodes[2]; n.bound.Readable(n.bound.Waiter(0)) {
		t.Error("a read at clock 3 under the bound 2")
	}
	must(t, c.Nodes[1].SetStaleness(ctx, 0, godwit.Within(3)))
	must(t, <-read)
	must(t, c.Nodes[2].SetStaleness(ctx, 0, godwit.Within(1)))
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := w.Pull(short, key, v); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reads at clock 3 under the bound 1: %v", err)
	}
	must(t, c.Nodes[0].SetStaleness(ctx, 0, godwit.Eventual))
	for range 100 {
		w.Advance()
	}
	must(t, w.Pull(ctx, key, v))

	var wg sync.WaitGroup
	for i, n := range c.Nodes { // all at a time
		wg.Go(func() {
			for s := range 20 {
				if err := n.SetStaleness(ctx, 0, godwit.Within(10*i+s)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, n := range c.Nodes {
		got, _ := n.bound.Limit(0)
		if want, _ := c.Nodes[0].bound.Limit(0); got != want {
			t.Errorf("%v has the bound %d, node 0 has %d", n.self, got, want)
		}
	}
}

func TestBoundsThatCannotBeSetAreRefused(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "free", Rows: 2, Dim: 1}, godwit.Table{Name: "bound", Rows: 2, Dim: 1, Staleness: godwit.Within(1)})
	c := local(t, 1, Config{Workers: 1, Model: m})
	ctx := background(t)
	for table, want := range map[int]string{-1: "no table -1", 2: "no table 2", 0: `"free"`} {
		if err := c.Nodes[0].SetStaleness(ctx, table, godwit.Within(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("table %d: %v", table, err)
		} else if errors.Is(err, godwit.ErrBound) != (table == 0) {
			t.Errorf("table %d: %v wraps %v: %v", table, err, godwit.ErrBound, table != 0)
		}
	}
	if err := c.Nodes[0].SetStaleness(ctx, 1, godwit.Within(-1)); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("less than 0: %v", err)
	}
	must(t, c.Nodes[0].SetStaleness(ctx, 1, godwit.Within(5)))
	for _, b := range []godwit.Bound{godwit.Within(-1), godwit.Within(godwit.MaxBound + 1)} {
		if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Staleness: b}); err == nil {
			t.Error("a model takes a bound out of range")
		}
	}
}

// What tells of clocks is not sent where no table asks for it.
func TestWithoutABoundNothingOfItIsKeptOrSent(t *testing.T) {
	c := local(t, 2, Config{Workers: 1, Model: model(t, 4, 1)})
	if c.Nodes[0].bound != nil {
		t.Error("there is a bound")
	}
	for range 100 {
		c.Nodes[0].Worker(0).Advance()
	}
	must(t, c.Nodes[0].Worker(0).WaitSync(background(t)))
	if s := sum(c); s.Blocked > 0 || s.Frames > 4 {
		t.Errorf("%+v", s)
	}
}

// Each step asks for the next one's values before it makes them, on real
// goroutines, while keys move and are replicated.
func TestConformanceC8PullsThatDependOnClocksSeeThem(t *testing.T) {
	const workers, rows, steps = 2, 6, 15
	parked := uint64(0)
	variants(t, []int{1, 3}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 1, Staleness: godwit.Within(godwit.MaxBound), Hot: first})
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			push, v := []float32{1, 1, 1}, make([]float32, 3)
			for step := range steps {
				keys := []godwit.Key{godwit.Key(rng.IntN(rows)), godwit.Key(rng.IntN(rows)), 0}
				h, err := w.PullAfter(ctx, w.Clock()+1, keys, v)
				if err != nil {
					return err
				}
				if rng.IntN(3) == 0 {
					if _, err := w.LocalizeAsync(ctx, keys[:1]); err != nil {
						return err
					}
				}
				if err := w.Intent(keys, w.Clock()+1, w.Clock()+3); err != nil {
					return err
				}
				if _, err := w.PushAsync(ctx, []godwit.Key{0, keys[0], keys[1]}, push); err != nil {
					return err
				}
				w.Advance()
				if err := w.Wait(ctx, h); err != nil {
					return err
				}
				if want := float32(nodes * workers * (step + 1)); v[2] < want {
					return fmt.Errorf("reads %v after step %d, all have pushed %v", v[2], step, want)
				}
			}
			return w.Barrier(ctx)
		})
		parked += sum(c).Parked
	})
	t.Logf("%d requests waited for a clock", parked)
	if parked < 100 {
		t.Errorf("%d requests waited for a clock: the test is vacuous", parked)
	}
}

// Petuum's cache: a read key is replicated at once, without an intent, others'
// pushes come to it by themselves, and it goes when it was not read for as many
// clocks as the bound has.
func TestTheStalePolicyReplicatesWhatIsReadWithinTheBound(t *testing.T) {
	for _, b := range []godwit.Bound{godwit.Within(2), godwit.Eventual} {
		keep := godwit.Clock(4) // by the policy, where the table has no bound
		if s, ok := b.Clocks(); ok {
			keep = s
		}
		p, err := placement.ByName("stale(keep=4)")
		must(t, err)
		m := modelOf(t, godwit.Table{Name: "t", Rows: 20, Dim: 1, Staleness: b})
		c := local(t, 2, Config{Workers: 1, Model: m, Policy: p})
		ctx, v := background(t), make([]float32, 1)
		key := homedAt(t, c.Nodes[0], 1, 1)
		w, other := c.Nodes[0].Worker(0), c.Nodes[1].Worker(0)
		state := func() string { return c.Nodes[0].rows.Holding(key[0]).State }
		must(t, w.Intent(key, 0, 5))
		must(t, w.WaitSync(ctx))
		if state() != "absent" {
			t.Errorf("bound %v: after an intent, the key is %s", b, state())
		}
		must(t, w.Pull(ctx, key, v))
		eventually(t, "a replica", func() bool { return state() == "replica" })
		must(t, other.Push(ctx, key, []float32{3}))
		eventually(t, "the other's push here", func() bool { return w.PullIfLocal(key[0], v) && v[0] == 3 })
		step := func() { w.Advance(); other.Advance() }
		for range 3 * keep { // it is read once in as many clocks as it is kept
			for range keep {
				step()
			}
			must(t, w.Pull(ctx, key, v))
			must(t, w.WaitSync(ctx))
			if state() != "replica" {
				t.Fatalf("bound %v: at clock %d, the key is %s", b, w.Clock(), state())
			}
		}
		for range keep + 1 {
			step()
		}
		eventually(t, "no replica", func() bool { return state() == "absent" })
		if s := c.Nodes[0].Stats(); s.Copies != 1 || s.Drops != 1 {
			t.Errorf("bound %v: %d copies, %d drops", b, s.Copies, s.Drops)
		}
	}
}
