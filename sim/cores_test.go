package sim

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

const us, ms = time.Microsecond, time.Millisecond

// What a node does for others, it does on the cores on which its workers compute.
func TestWorkersAndServerShareTheCoresOfANode(t *testing.T) {
	took := func(c Compute) time.Duration {
		c.Step, c.Record = ms, ms
		x := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static, Compute: c})
		k := homed(x, 0)
		var ended time.Duration
		run(t, x, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			if w.ID().Node == 0 {
				for range 10 {
					w.Advance()
				}
				ended = x.Now()
				return nil
			}
			for range 5 {
				if err := w.Push(ctx, []godwit.Key{k}, make([]float32, 1)); err != nil {
					return err
				}
			}
			return nil
		})
		return ended
	}
	for _, c := range []struct {
		compute  Compute
		min, max time.Duration
	}{
		{Compute{}, 10 * ms, 10 * ms},              // cores of its own
		{Compute{Cores: 2}, 10 * ms, 10 * ms},      // one for each
		{Compute{Cores: 1}, 13 * ms, 15*ms + us*5}, // ten steps and the requests that came meanwhile
	} {
		if d := took(c.compute); d < c.min || d > c.max {
			t.Errorf("%d cores: ten steps of 1 ms beside five requests of 1 ms take %v, want %v … %v", c.compute.Cores, d, c.min, c.max)
		}
	}
}

func TestNodesOfAMachineShareItsCores(t *testing.T) {
	took := func(machine bool, cores int) time.Duration {
		c := cluster(t, Config{Nodes: 4, Workers: 1, Model: model(t, 1000, 1), Compute: Compute{Step: ms, Cores: cores, Machine: machine}})
		return run(t, c, func(_ context.Context, w godwit.Worker, _ godwit.Key) error {
			for range 10 {
				w.Advance()
			}
			return nil
		}).Elapsed
	}
	for _, c := range []struct {
		machine bool
		cores   int
		want    time.Duration
	}{{false, 1, 10 * ms}, {true, 1, 40 * ms}, {true, 2, 20 * ms}, {true, 4, 10 * ms}} {
		if got := took(c.machine, c.cores); got != c.want {
			t.Errorf("machine %v, %d cores: ten steps of 1 ms at each of four nodes take %v, want %v", c.machine, c.cores, got, c.want)
		}
	}
}

// A request waits for the core of a worker that computes, but not for a whole long step.
func TestWhoComputesLongLetsOthersTakeATurn(t *testing.T) {
	took := func(slice time.Duration) time.Duration {
		c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: placement.Static,
			Network: Network{Latency: 10 * us}, Compute: Compute{Step: 50 * ms, Record: us, Cores: 1, Slice: slice}})
		var d time.Duration
		run(t, c, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
			if w.ID().Node == 1 {
				w.Advance()
				return nil
			}
			err := pullOnce(ctx, w, there)
			d = c.Now()
			return err
		})
		return d
	}
	for slice, want := range map[time.Duration]time.Duration{0: 10 * ms, ms: ms, time.Second: 50 * ms} {
		if d := took(slice); d < want || d > want+100*us {
			t.Errorf("slices of %v: a read at a node that computes for 50 ms takes %v, want %v", slice, d, want)
		}
	}
}

// A core that will take a frame computes until the frame has come.
func TestACoreIsFreeUntilAFrameHasCome(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1000), Policy: placement.Static,
		Network: Network{Latency: 10 * us, Bandwidth: 4e6}, Compute: Compute{Step: 10 * us, Frame: 50 * us, Cores: 1}})
	var ended time.Duration
	run(t, c, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
		if w.ID().Node == 0 {
			return w.Push(ctx, []godwit.Key{there}, make([]float32, 1000)) // a frame that takes a millisecond at each interface
		}
		for c.Now() < 1100*us {
			w.Advance()
		}
		for range 50 {
			w.Advance()
		}
		ended = c.Now()
		return nil
	})
	if ended < 1600*us || ended > 1650*us {
		t.Errorf("fifty steps of 10 µs after 1.1 ms, while the interface receives a frame for a millisecond, end at %v", ended)
	}
}

// A node prepares the frames of each of its connections while its interface sends another one.
func TestFramesArePreparedWhileTheInterfaceSends(t *testing.T) {
	const peers = 4
	c := cluster(t, Config{Nodes: 1 + peers, Workers: 1, Model: model(t, 1000, 1000), Policy: placement.Static,
		Network: Network{Bandwidth: 320e6}, Compute: Compute{Send: 100 * us}})
	elapsed := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		var keys []godwit.Key
		for i := 1; i <= peers; i++ {
			keys = append(keys, homed(c, i))
		}
		return w.Push(ctx, keys, make([]float32, 1000*peers))
	}).Elapsed
	// Some 107 µs at each interface, and 100 of the processors for a push and its answer; one after the other would be 830 and more.
	if elapsed < 600*us || elapsed > 780*us {
		t.Errorf("four pushes of 4,000 bytes take %v", elapsed)
	}
}

// The members of a node's rounds work at the same time where cores are free.
func TestRoundsTakeTheCoresThatAreFree(t *testing.T) {
	took := func(cores int, busy bool) (d time.Duration, helped uint64) {
		c := cluster(t, Config{Nodes: 2, Workers: 4, Model: model(t, 20_000, 1), Policy: placement.ReplicateAll, Compute: Compute{Round: us, Cores: cores, Step: 500 * ms}})
		keys := make([]godwit.Key, 20_000)
		for i := range keys {
			keys[i] = godwit.Key(i)
		}
		res := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			switch {
			case w.ID().Node != 0:
				return nil
			case w.ID().Local > 0:
				if busy {
					w.Advance()
				}
				return nil
			}
			w.(*worker).step = true // to push takes no time
			if err := w.Push(ctx, keys, make([]float32, len(keys))); err != nil {
				return err
			}
			began := c.Now()
			if err := w.WaitSync(ctx); err != nil {
				return err
			}
			d = c.Now() - began
			return nil
		})
		for _, s := range res.Stats {
			helped += s.Helped
		}
		return d, helped
	}
	one, none := took(1, false)
	four, some := took(4, false)
	if none != 0 || some == 0 || four > one*2/5 || four < one/5 {
		t.Errorf("a WaitSync for 20,000 keys takes %v on one core and %v on four (%d and %d parts by helpers)", one, four, none, some)
	}
	_, some = took(4, true)
	if some != 0 {
		t.Errorf("while all cores are taken, helpers took %d parts", some)
	}
}

// A round that begins while all cores are taken gets help when some become free.
func TestARoundGetsHelpWhenCoresBecomeFree(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 4, Model: model(t, 20_000, 1), Policy: placement.ReplicateAll, Compute: Compute{Round: us, Cores: 4, Step: 3 * ms}})
	keys := make([]godwit.Key, 20_000)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	var d time.Duration
	res := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		switch {
		case w.ID().Node != 0:
			return nil
		case w.ID().Local > 0:
			w.Advance()
			return nil
		}
		x := w.(*worker)
		x.step = true // to push takes no time
		if err := w.Push(ctx, keys, make([]float32, len(keys))); err != nil {
			return err
		}
		began := c.Now()
		x.step = false
		w.Advance()
		if err := w.WaitSync(ctx); err != nil {
			return err
		}
		d = c.Now() - began
		return nil
	})
	if helped := res.Stats[0].Helped; helped == 0 || d > 9*ms {
		t.Errorf("after steps of 3 ms, a WaitSync for 20,000 keys ends after %v (%d parts by helpers)", d, helped)
	}
}

// A WaitSync looks at each update that is not acknowledged, which takes a part of what a record takes. Those that begin together look once.
func TestTheLooksOfAWaitSyncAreCharged(t *testing.T) {
	const keys, workers = 3999, 3
	x := cluster(t, Config{Nodes: 2, Workers: workers, Model: model(t, keys, 1), Policy: placement.ReplicateAll, Compute: Compute{Round: us, Cores: 1}})
	before := x.hosts[0].node.Stats()
	run(t, x, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		own := make([]godwit.Key, keys/workers)
		push := make([]float32, len(own))
		for i := range own {
			own[i], push[i] = godwit.Key(workers*i+w.ID().Local), 1
		}
		if err := w.Push(ctx, own, push); err != nil {
			return err
		}
		return w.WaitSync(ctx)
	})
	h := x.hosts[0]
	sent := h.node.Stats().Sub(before)
	records, updates := int64(sent.Deltas+sent.Refreshes), int64(sent.Deltas)
	if got, want := h.worked[usual.Rounds], (records+updates/4)*int64(us); updates < keys/3 || got < want || got > want+want/50 {
		t.Errorf("for %d records and looks at %d updates, rounds worked for %v, want %v", records, updates, time.Duration(got), time.Duration(want))
	}
}

func TestAnnouncingLoadingAndBytesCost(t *testing.T) {
	took := func(compute Compute, nodes int, scheme sampling.Scheme) time.Duration {
		c := cluster(t, Config{Nodes: nodes, Workers: 1, Model: model(t, 1000, 100), Policy: placement.Static, Compute: compute,
			Samplers: []sampling.Spec{{Name: "s", Dist: sampling.Uniform(1000), Scheme: scheme}}})
		own := make([]godwit.Key, 0, 10)
		for k := godwit.Key(0); len(own) < 10; k++ {
			if c.hosts[0].node.Home(k) == 0 {
				own = append(own, k)
			}
		}
		return run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			keys := own
			if w.ID().Node != 0 {
				return nil
			}
			if err := w.Intent(keys, 0, 1); err != nil {
				return err
			}
			id, err := w.PrepareSample(0, 20, 0, 1)
			if err != nil {
				return err
			}
			if err := w.Pull(ctx, keys, make([]float32, 1000)); err != nil {
				return err
			}
			w.FinishSample(id)
			w.Advance()
			return nil
		}).Elapsed
	}
	for what, c := range map[string]struct {
		compute Compute
		nodes   int
		scheme  sampling.Scheme
		want    time.Duration
	}{
		"an intent of ten keys":                {Compute{Announce: 10 * us}, 2, sampling.Local{}, 100 * us},
		"loading a batch of ten keys":          {Compute{Load: 20 * us}, 1, sampling.Local{}, 200 * us},
		"twenty samples":                       {Compute{Sample: 5 * us}, 1, sampling.Local{}, 100 * us},
		"reading ten rows of a hundred floats": {Compute{Byte: 100}, 1, sampling.Local{}, 400 * us},
		"all of it on shared cores":            {Compute{Announce: 10 * us, Load: 20 * us, Sample: 5 * us, Byte: 100, Cores: 1}, 2, sampling.Local{}, 800 * us},
		"announcing to nobody":                 {Compute{Announce: 10 * us}, 1, sampling.Local{}, 0},
		"samples that are announced":           {Compute{Announce: 10 * us}, 2, sampling.Prepared{}, 300 * us},
	} {
		if got := took(c.compute, c.nodes, c.scheme); got != c.want {
			t.Errorf("%s takes %v, want %v", what, got, c.want)
		}
	}
}

func TestFramesAndTheirBytesCostAtBothEnds(t *testing.T) {
	took := func(compute Compute) time.Duration {
		c := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1000), Policy: placement.Static, Compute: compute})
		return run(t, c, pullOnce).Elapsed
	}
	if got, want := took(Compute{Send: 10 * us, Frame: 20 * us}), 60*us; got != want {
		t.Errorf("two frames take %v, want %v", got, want)
	}
	// The answer has 4,000 bytes of values, and headers.
	if got := took(Compute{FrameByte: 10}); got < 80*us || got > 85*us {
		t.Errorf("sending and receiving 4,000 bytes at 10 ns takes %v, want 80 … 85 µs", got)
	}
}

// The planner and the rounds of a node are charged apart.
func TestThePlannerIsChargedApart(t *testing.T) {
	worked := func(c Compute, policy placement.Policy, intents bool) (planner, others int64) {
		x := cluster(t, Config{Nodes: 2, Workers: 1, Model: model(t, 1000, 1), Policy: policy, Compute: c})
		run(t, x, func(ctx context.Context, w godwit.Worker, there godwit.Key) error {
			for range 20 {
				if intents {
					if err := w.Intent([]godwit.Key{there}, w.Clock()+1, w.Clock()+2); err != nil {
						return err
					}
				}
				w.Advance()
				if err := w.Push(ctx, []godwit.Key{there}, []float32{1}); err != nil {
					return err
				}
				if err := w.WaitSync(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		for _, h := range x.hosts {
			planner += h.worked[usual.Planning]
			others += h.worked[usual.Rounds]
		}
		return planner, others
	}
	planner, others := worked(Compute{Step: ms, Plan: us}, placement.Static, true)
	if planner == 0 || others != 0 {
		t.Errorf("planners worked for %d ns and others for %d, want some and 0", planner, others)
	}
	acting, _ := worked(Compute{Step: ms, Plan: us, Want: 3 * us}, placement.ReplicateAll, true)
	idle, _ := worked(Compute{Step: ms, Plan: us}, placement.ReplicateAll, true)
	if acting != idle {
		t.Errorf("planners of a policy that does nothing about intents worked for %d ns, want %d", acting, idle)
	}
	if acting, _ := worked(Compute{Step: ms, Plan: us, Want: 3 * us}, placement.AdaptiveReplicateOnly, true); acting < 2*idle {
		t.Errorf("planners that act on intents worked for %d ns, others for %d", acting, idle)
	}
	if planner, rounds := worked(Compute{Step: ms, Round: us, Plan: us}, placement.ReplicateAll, false); planner != 0 || rounds == 0 {
		t.Errorf("without intents planners worked for %d ns and rounds for %d, want 0 and some", planner, rounds)
	}
}
