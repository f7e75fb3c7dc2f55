//go:build !race

package linear

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// A filteredRun is what came of a run on three nodes.
type filteredRun struct {
	values  []float32 // of all rows
	quality Quality
	loss    float64 // of the last epoch
	stats   node.Stats
}

// filteredOn trains over a network on which the length of a frame does not
// matter, so that runs differ in what arrives and in nothing else.
func filteredOn[D any](t *testing.T, task anyTask[D], m *model, policy placement.Policy, epochs int, filters string) filteredRun {
	t.Helper()
	return filteredBy[D](t, 5, task, m, policy, epochs, filters)
}

// filteredBy is filteredOn with a seed of the simulation, by which nodes are faster or slower and get other chunks.
func filteredBy[D any](t *testing.T, seed uint64, task anyTask[D], m *model, policy placement.Policy, epochs int, filters string) filteredRun {
	t.Helper()
	fs, err := filter.Parse(filters)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := godwit.NewModel(filter.On(task.Tables(), fs...)...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.New(sim.Config{Nodes: 3, Workers: 2, Seed: seed, Model: tables, Policy: policy,
		Network: sim.Network{Latency: 50 * time.Microsecond},
		Compute: sim.Compute{Step: 100 * time.Microsecond, Spread: 0.5, Key: 100 * time.Nanosecond, Frame: 2 * time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	var r filteredRun
	res, err := c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
		report, err := train.Run(ctx, env, task, train.Options{Epochs: epochs})
		if err != nil {
			return err
		}
		q, err := m.EvaluateOn(ctx, &env, "test", m.data.Test)
		if env.Node == 0 {
			r.quality, r.loss = q, report.Losses[epochs-1].Mean()
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", filters, err)
	}
	for k := godwit.Key(0); tables.Has(k); k++ {
		r.values = append(r.values, c.Value(k)...)
	}
	r.stats = res.Sum()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return r
}

func TestConformanceC27FiltersThatLoseNothingLeaveTheModelBitForBit(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples = 1500 })
	for _, policy := range []placement.Policy{placement.Static, placement.Adaptive} {
		run := func(filters string) (blocks, ftrl filteredRun) {
			bc := DefaultBlockConfig()
			bc.Blocks = 8
			b := newBlocks(t, bc, data)
			c := DefaultConfig()
			c.Factors = 4
			f := newTask(t, c, data)
			return filteredOn[Turn](t, b, b.model, policy, 4, filters), filteredOn[Batch](t, f, f.model, policy, 2, filters)
		}
		blocks, ftrl := run("")
		for _, filters := range []string{"sparse", "s2", "sparse, zstd"} {
			b, f := run(filters)
			sameBits(t, policy.Name()+" "+filters+" blocks", b.values, blocks.values)
			sameBits(t, policy.Name()+" "+filters+" ftrl", f.values, ftrl.values)
			t.Logf("%s, %s: %d bytes became %d (blocks), %d became %d (ftrl)", policy.Name(), filters, blocks.stats.SentBytes, b.stats.SentBytes, ftrl.stats.SentBytes, f.stats.SentBytes)
			// Hardly a batch here is shorter without its zeros, so that sparse alone may find none; what is asked for once more or less differs by bytes.
			if saved := int64(blocks.stats.SentBytes) - int64(b.stats.SentBytes); saved < -100 || saved <= 0 && filters != "sparse" {
				t.Errorf("%s saves %d bytes: the test is vacuous", filters, saved)
			}
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %v, without filters it is %v", what, i, got[i], want[i])
		}
	}
}

func TestConformanceC27TrainingWithFiltersThatLoseEndsAsGood(t *testing.T) {
	data := generated(t, nil)
	c := DefaultConfig()
	c.Batch = 16
	ftrl := newTask(t, c, data)
	bc := DefaultBlockConfig()
	bc.Blocks = 8
	blocks := newBlocks(t, bc, data)
	of := map[string]func(seed uint64, filters string) filteredRun{
		"ftrl": func(seed uint64, filters string) filteredRun {
			return filteredBy[Batch](t, seed, ftrl, ftrl.model, placement.Static, 4, filters)
		},
		"blocks": func(seed uint64, filters string) filteredRun {
			return filteredBy[Turn](t, seed, blocks, blocks.model, placement.Static, 12, filters)
		},
	}
	for _, x := range []struct {
		solver, filters string
		seeds           uint64 // whose mean is judged: what is held back makes as much difference in one run as another order of the examples
	}{
		{"ftrl", "fixed(bytes=1)", 1}, {"ftrl", "fixed(bytes=2,answers=1)", 1}, {"ftrl", "fixed(bytes=1,forget=1)", 1}, {"ftrl", "bf16", 1}, {"ftrl", "bf16(answers=1)", 1},
		{"ftrl", "significant(threshold=0.1,decay=0.01), fixed(bytes=2), sparse", 10}, {"blocks", "bf16(forget=1), sparse", 1},
	} {
		loss, test := 0.0, 0.0 // by how much they are greater with filters, as a share
		for seed := range x.seeds {
			without, with := of[x.solver](5+seed, ""), of[x.solver](5+seed, x.filters)
			t.Logf("%s, %s: loss %.5f → %.5f, log loss of the test %.5f → %.5f, %d of %d bytes, %d held back, %d leftovers", x.solver, x.filters, without.loss, with.loss,
				without.quality.LogLoss, with.quality.LogLoss, with.stats.SentBytes, without.stats.SentBytes, with.stats.HeldBack, with.stats.Leftovers)
			loss += (with.loss/without.loss - 1) / float64(x.seeds)
			test += (with.quality.LogLoss/without.quality.LogLoss - 1) / float64(x.seeds)
			if with.stats.SentBytes >= without.stats.SentBytes || with.stats.FilterOut >= with.stats.FilterIn {
				t.Errorf("%s with %s sends %d bytes, without %d: the test is vacuous", x.solver, x.filters, with.stats.SentBytes, without.stats.SentBytes)
			}
		}
		if math.Abs(loss) > 1e-3 || math.Abs(test) > 1e-3 {
			t.Errorf("%s with %s ends at a loss that is greater by a share of %.5f than without, and of %.5f on the test", x.solver, x.filters, loss, test)
		}
	}
}

// Random numbers of filters come from the seed of the run.
func TestARunWithFiltersIsRepeatedBitForBit(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples = 800 })
	task := newTask(t, DefaultConfig(), data)
	run := func(filters string) []float32 {
		return filteredOn[Batch](t, task, task.model, placement.Adaptive, 2, filters).values
	}
	const lossy = "skip(p=0.3), noise(std=0.001), bf16(answers=1), s2"
	once, again := run(lossy), run(lossy)
	sameBits(t, lossy, once, again)
	if slices.Equal(once, run("")) {
		t.Error("the filters changed nothing: the test is vacuous")
	}
}
