package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
)

func model(t testing.TB, rows uint64, dim int) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// makeSteps has a worker make a step of each batch: it announces those of so many steps ahead, pulls the batch, and pushes ones to its rows of dim floats.
// Each is called with the number of a step before that.
func makeSteps(ctx context.Context, w godwit.Worker, batches [][]godwit.Key, dim, ahead int, each func(step int)) error {
	told := 0
	for i, b := range batches {
		each(i)
		for ; told < len(batches) && told <= i+ahead; told++ {
			if err := w.Intent(batches[told], godwit.Clock(told), godwit.Clock(told+1)); err != nil {
				return err
			}
		}
		if err := w.Pull(ctx, b, make([]float32, dim*len(b))); err != nil {
			return err
		}
		if err := w.Push(ctx, b, slices.Repeat([]float32{1}, dim*len(b))); err != nil {
			return err
		}
		w.Advance()
	}
	return nil
}

func cluster(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// run runs a program on all workers, each of which is told a key that has its
// home at the node after its own.
func run(t testing.TB, c *Cluster, program func(ctx context.Context, w godwit.Worker, there godwit.Key) error) *Result {
	t.Helper()
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		return program(ctx, w, homed(c, (int(w.ID().Node)+1)%len(c.hosts)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func homed(c *Cluster, node int) godwit.Key {
	k := godwit.Key(0)
	for c.hosts[0].node.Home(k) != godwit.NodeID(node) {
		k++
	}
	return k
}

// pullOnce has worker 0 of node 0 read a key of node 1.
func pullOnce(ctx context.Context, w godwit.Worker, there godwit.Key) error {
	if w.ID() != (godwit.WorkerID{}) {
		return nil
	}
	return w.Pull(ctx, []godwit.Key{there}, make([]float32, w.Model().Dim(there)))
}

func TestARemoteReadTakesTwoWaysAndTheServersTime(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static,
		Network: Network{Frame: 2 * us, Latency: 50 * us}, Compute: Compute{Frame: 5 * us, Record: us}})
	r := run(t, c, pullOnce)
	if want := 2 * (2 + 50 + 2 + 5 + 1) * us; r.Elapsed != want || r.Messages != 2 {
		t.Errorf("%v and %d messages, want %v and 2", r.Elapsed, r.Messages, want)
	}
}

func TestBytesTakeTimeAtBothInterfacesAndWorkersShareThem(t *testing.T) {
	took := func(workers int) time.Duration {
		c := cluster(t, Config{Nodes: 2, Workers: workers, Model: model(t, 1000, 125_000/4), Policy: placement.Static,
			Network: Network{Bandwidth: 1e9}})
		return run(t, c, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
			if w.ID().Node != 0 {
				return nil
			}
			return w.Pull(ctx, []godwit.Key{there}, make([]float32, 125_000/4))
		}).Elapsed
	}
	// 125 kB are 1 ms at 1 Gbit/s, and 5 % more with headers; the second
	// interface begins when the first is through.
	one, two := took(1), took(2)
	if one < 2*time.Millisecond || one > 2200*time.Microsecond {
		t.Errorf("125 kB take %v over two interfaces of 1 Gbit/s, want about 2.1 ms", one)
	}
	if more := two - one; more < time.Millisecond || more > 1100*time.Microsecond {
		t.Errorf("the answer to a second worker takes %v longer, want about 1.05 ms", more)
	}
}

func TestAPartitionHoldsUpWhatWouldCrossIt(t *testing.T) {
	c := cluster(t, Config{Nodes: 3, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static,
		Network: Network{Latency: time.Microsecond, Partitions: []Partition{{From: 0, To: time.Second, Nodes: []int{1}}}}})
	ended := make([]time.Duration, 3)
	run(t, c, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
		if w.ID().Node == 1 {
			return nil
		}
		err := w.Pull(ctx, []godwit.Key{there}, make([]float32, 1))
		ended[w.ID().Node] = c.Now()
		return err
	})
	if ended[0] < time.Second || ended[2] > time.Millisecond {
		t.Errorf("node 0 reads at node 1 by %v, want after the partition; node 2 at node 0 by %v, want at once", ended[0], ended[2])
	}
}

func TestStepsAndAccessesTakeTheirTime(t *testing.T) {
	c := cluster(t, Config{Nodes: 1, Workers: 2, Model: model(t, 100, 1), Compute: Compute{Step: 1000 * us, Key: 10 * us}})
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		for range 10 {
			if err := w.Pull(ctx, []godwit.Key{1, 2, 3}, make([]float32, 3)); err != nil {
				return err
			}
			if err := w.Push(ctx, []godwit.Key{1, 2}, make([]float32, 2)); err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	// The last push is not followed by anything that its time could delay.
	if lo, hi := 10*1030*us, 10*1050*us; r.Elapsed < lo || r.Elapsed > hi {
		t.Errorf("10 steps with 50 accesses take %v, want %v … %v", r.Elapsed, lo, hi)
	}
	if r.Messages != 0 {
		t.Errorf("one node sends itself %d messages", r.Messages)
	}
}

// A key that a worker asks to move here costs it an access, as a key that it reads or writes does.
func TestAskingForKeysTakesItsTime(t *testing.T) {
	keys := []godwit.Key{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for what, localize := range map[string]func(context.Context, godwit.Worker) error{
		"Localize": func(ctx context.Context, w godwit.Worker) error { return w.Localize(ctx, keys) },
		"LocalizeAsync": func(ctx context.Context, w godwit.Worker) error {
			h, err := w.LocalizeAsync(ctx, keys)
			return errors.Join(err, w.Wait(ctx, h))
		},
	} {
		c := cluster(t, Config{Nodes: 1, Workers: 1, Model: model(t, 100, 1), Compute: Compute{Key: 10 * us, Byte: 1000}})
		r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error { return localize(ctx, w) })
		if want := 100 * us; r.Elapsed != want {
			t.Errorf("%s of ten keys takes %v, want %v", what, r.Elapsed, want)
		}
	}
}

func TestTheServersCoresAreShared(t *testing.T) {
	took := func(servers int) time.Duration {
		c := cluster(t, Config{Nodes: 9, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static,
			Compute: Compute{Record: time.Millisecond, Servers: servers}})
		k := homed(c, 0)
		return run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			if w.ID().Node == 0 {
				return nil
			}
			return w.Push(ctx, []godwit.Key{k}, make([]float32, 1))
		}).Elapsed
	}
	// Eight requests at node 0, and each answer at a node of its own.
	if one, four := took(1), took(4); one != 9*time.Millisecond || four != 3*time.Millisecond {
		t.Errorf("8 requests take %v with one core and %v with four, want 9ms and 3ms", one, four)
	}
}

func TestTheSameSeedRepeatsBitForBit(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := uint64(1); seed <= 30; seed++ {
		a, err := Storm(context.Background(), seed, StormConfig{Nodes: 3})
		if err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
		b, _ := Storm(context.Background(), seed, StormConfig{Nodes: 3})
		if a.Hash != b.Hash || a.Elapsed != b.Elapsed || a.Events != b.Events {
			t.Errorf("seed %d (%s) gives %x in %v with %d events and then %x in %v with %d", seed, a.Config, a.Hash, a.Elapsed, a.Events, b.Hash, b.Elapsed, b.Events)
		}
		if a.Messages == 0 {
			t.Errorf("seed %d (%s) sends nothing", seed, a.Config)
		}
		hashes[a.Hash] = true
	}
	if len(hashes) != 30 {
		t.Errorf("30 seeds give %d different runs", len(hashes))
	}
}

func TestAProgramThatWaitsForEverIsAnErrorThatSaysForWhat(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 2, Model: model(t, 100, 1)})
	_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		if w.ID().Node == 1 && w.ID().Local == 1 {
			return nil
		}
		return w.Barrier(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "nothing is under way") || !strings.Contains(err.Error(), "barrier") {
		t.Errorf("%v, want that nothing is under way, and the barrier", err)
	}
	if _, again := c.Run(context.Background(), nil); !errors.Is(again, godwit.ErrClosed) {
		t.Errorf("running again: %v, want ErrClosed", again)
	}
}

func TestTheFirstErrorEndsAllAndLeavesNothingRunning(t *testing.T) {
	wrong := errors.New("wrong")
	before := runtime.NumGoroutine()
	for what, program := range map[string]func(ctx context.Context, w godwit.Worker) error{
		"error": func(ctx context.Context, w godwit.Worker) error {
			if w.ID().Node == 1 {
				return wrong
			}
			return w.Barrier(ctx)
		},
		"panic": func(ctx context.Context, w godwit.Worker) error {
			if w.ID().Node == 1 {
				panic("wrong")
			}
			return w.Barrier(ctx)
		},
	} {
		c, err := New(Config{Nodes: 3, Workers: 2, Model: model(t, 100, 1)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Run(context.Background(), program)
		if err == nil || !strings.Contains(err.Error(), "wrong") || what == "error" && !errors.Is(err, wrong) {
			t.Errorf("%s: %v, want what went wrong", what, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: closing: %v", what, err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestCancellationEndsARun(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static, Network: Network{Latency: time.Microsecond}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := c.Run(ctx, func(_ context.Context, w godwit.Worker) error {
		there := homed(c, 1-int(w.ID().Node))
		for i := 0; ; i++ {
			if i == 100 {
				cancel()
			}
			if err := w.Pull(context.Background(), []godwit.Key{there}, make([]float32, 1)); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestNodesExchangeAndStopTogether(t *testing.T) {
	c := cluster(t, Config{Nodes: 3, Workers: 1, Model: model(t, 100, 1), Network: Network{Latency: time.Millisecond}})
	r, err := c.RunNodes(context.Background(), func(ctx context.Context, env train.Env) error {
		for round := range 3 {
			all, err := env.Exchange(ctx, "x", []byte(fmt.Sprint(round, env.Node)))
			if err != nil {
				return err
			}
			for i, p := range all {
				if string(p) != fmt.Sprint(round, i) {
					return fmt.Errorf("node %d got %q of node %d in round %d", env.Node, p, i, round)
				}
			}
		}
		if env.Node == 1 {
			if err := c.hosts[1].session.RequestStop(ctx, "enough"); err != nil {
				return err
			}
		}
		world{c, c.hosts[env.Node]}.Wait(env.Stop, nil, nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * 2 * time.Millisecond; r.Elapsed != want {
		t.Errorf("three exchanges and a stop take %v, want %v", r.Elapsed, want)
	}
}

func TestSeveralProgramsFollowEachOtherOnOneCluster(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Adaptive, Network: Network{Latency: time.Millisecond}, Watch: true})
	push := func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
		return w.Push(ctx, []godwit.Key{there}, []float32{1})
	}
	first, second := run(t, c, push), run(t, c, push)
	if first.Messages != second.Messages || first.Elapsed != second.Elapsed || first.Hash == second.Hash {
		t.Errorf("the first program: %d messages in %v, hash %x; the second: %d in %v, %x", first.Messages, first.Elapsed, first.Hash, second.Messages, second.Elapsed, second.Hash)
	}
	if v := c.Value(homed(c, 0)); len(v) != 1 || v[0] != 2 {
		t.Errorf("the value is %v after two pushes of 1", v)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckNoticesWhatIsLeftOver(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Broken: protocol.Broken{DropEarly: true}})
	run(t, c, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
		return w.Intent([]godwit.Key{there}, 0, 5) // and never advances
	})
	if err := c.Check(); err != nil {
		t.Errorf("an intent that goes on is no fault: %v", err)
	}
	if err := c.unwanted(); err == nil {
		t.Error("an intent that goes on does not count as left over")
	}
}

// What is no number, or an infinite one, is refused by its name: times that are made of it would be any.
func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	m := model(t, 10, 1)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for want, cfg := range map[string]Config{
			"bandwidth":      {Network: Network{Bandwidth: x}},
			"with a spike":   {Network: Network{Spike: x}},
			"steps vary":     {Compute: Compute{Spread: x}},
			"a byte of a":    {Compute: Compute{Byte: x}},
			"one of a frame": {Compute: Compute{FrameByte: x}},
			"times as long":  {Compute: Compute{Slow: map[int]float64{0: x}}},
		} {
			cfg.Nodes, cfg.Workers, cfg.Model = 1, 1, m
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprint(x)) {
				t.Errorf("%v: %v, want an error with %q", x, err, want)
			}
		}
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	m := model(t, 10, 1)
	for want, cfg := range map[string]Config{
		"0 nodes":                {Workers: 1, Model: m},
		"0 workers":              {Nodes: 1, Model: m},
		"no model":               {Nodes: 1, Workers: 1},
		"bandwidth":              {Nodes: 1, Workers: 1, Model: m, Network: Network{Bandwidth: -1}},
		"faster than":            {Nodes: 1, Workers: 1, Model: m, Network: Network{Latency: -1}},
		"spike":                  {Nodes: 1, Workers: 1, Model: m, Network: Network{Spike: 2}},
		"ends before":            {Nodes: 1, Workers: 1, Model: m, Network: Network{Partitions: []Partition{{From: 2, To: 1}}}},
		"cuts off":               {Nodes: 1, Workers: 1, Model: m, Network: Network{Partitions: []Partition{{To: 1, Nodes: []int{1}}}}},
		"negative":               {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Step: -1}},
		"steps vary":             {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Spread: 2}},
		"server cores":           {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Servers: -1}},
		"-1 cores":               {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Cores: -1}},
		"one of them":            {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Cores: 1, Servers: 1}},
		"without a num":          {Nodes: 1, Workers: 1, Model: m, Compute: Compute{Machine: true}},
		"Config.Workers is 5000": {Nodes: 1, Workers: 5000, Model: m},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := NetworkNamed("x"); err == nil || !strings.Contains(err.Error(), "10g") {
		t.Errorf("%v, want the names of the networks", err)
	}
}
