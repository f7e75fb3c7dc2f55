package sim

import (
	"context"
	"flag"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the storm of this seed only")
	seedsFlag = flag.Uint64("seeds", 1200, "storms")
)

func TestStormsKeepAllPromises(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	} else if testing.Short() {
		n /= 10
	}
	r := Storms(context.Background(), first, n, StormConfig{}, runtime.GOMAXPROCS(0))
	if r.Failed != nil {
		t.Fatalf("-seed %d: %v", r.Failed.Seed, r.Failed)
	}
	t.Logf("%+v", *r)
	if n >= 100 && (r.Seeds != n || r.Moves < n || r.Copies < n || r.Drops < n || r.Messages < 100*n) {
		t.Errorf("%+v: the test is vacuous", *r)
	}
}

// Filters that let whole numbers pass change nothing that a storm can see.
func TestStormsKeepAllPromisesWithFilters(t *testing.T) {
	for _, fs := range [][]godwit.Filter{{filter.Sparse{}, filter.Compress{Method: filter.S2}}, {filter.BF16{}, filter.Compress{Method: filter.Zstd}}} {
		var sum node.Stats
		for seed := uint64(1); seed <= 200; seed++ {
			r, err := Storm(context.Background(), seed, StormConfig{Filters: fs})
			if err != nil {
				t.Fatalf("%s, seed %d (%s): %v", fs[0].Name(), seed, r.Config, err)
			}
			sum.Add(r.Sum())
		}
		t.Logf("%s: %d of %d bytes of values, %d of %d of frames", fs[0].Name(), sum.FilterOut, sum.FilterIn, sum.SentBytes, sum.PlainBytes)
		if sum.FilterOut >= sum.FilterIn || sum.SentBytes >= sum.PlainBytes {
			t.Error("the test is vacuous")
		}
	}
}

// evens rounds updates of replicas to even numbers, towards zero, so that others
// see some of what was pushed only later, and never more than that.
type evens struct{}

func (evens) Name() string               { return "evens" }
func (evens) Filter(*godwit.FilterBatch) {}
func (evens) MaxLoss() godwit.Loss       { return godwit.LossFractions }
func (evens) RelativeError() bool        { return true }
func (evens) QuantizesPulls() bool       { return false }
func (evens) Quantize(vals []float32, _ uint64) godwit.Encoding {
	for i, x := range vals {
		vals[i] = 2 * float32(math.Trunc(float64(x)/2))
	}
	return godwit.Encoding{}
}

// What is rounded off an update of a replica stays there and is sent later:
// nobody misses it where it was promised, and in the end nothing is missing.
func TestStormsKeepAllPromisesWhereUpdatesOfReplicasAreRounded(t *testing.T) {
	var sum node.Stats
	for seed := uint64(1); seed <= 500; seed++ {
		r, err := Storm(context.Background(), seed, StormConfig{Filters: []godwit.Filter{evens{}}})
		if err != nil {
			t.Fatalf("seed %d (%s): %v", seed, r.Config, err)
		}
		sum.Add(r.Sum())
	}
	t.Logf("%d updates, %d bytes of values rounded", sum.Deltas, sum.FilterIn)
	if sum.FilterIn < 10_000 {
		t.Error("the test is vacuous")
	}
}

// Under every policy, storms meet what it is there for.
func TestStormsOfEachPolicyMeetWhatItDoes(t *testing.T) {
	for _, name := range append(placement.Names(), "") {
		for _, bounded := range []bool{false, true} {
			w := StormConfig{Bounded: bounded}
			if name != "" {
				w.Policy, _ = placement.ByName(name)
			}
			r := Storms(context.Background(), 1, enoughSeeds, w, runtime.GOMAXPROCS(0))
			if r.Failed != nil {
				t.Fatalf("%q: %v", name, r.Failed)
			}
			if err := r.Vacuous(w); err != nil {
				t.Error(err)
			}
		}
	}
}

// Of the few keys of a storm, none is accessed 50 times as often as the mean.
func TestStormsThatCannotMeetWhatTheirPolicyDoesSaySo(t *testing.T) {
	p, err := placement.ByName("nonuniform(factor=50)")
	if err != nil {
		t.Fatal(err)
	}
	w := StormConfig{Policy: p}
	r := Storms(context.Background(), 1, enoughSeeds, w, runtime.GOMAXPROCS(0))
	if err := r.Vacuous(w); err == nil || !strings.Contains(err.Error(), "under nonuniform(factor=50) kept all promises, but tell little: no replica was set up") {
		t.Errorf("%v", err)
	}
	for _, few := range []StormConfig{{Policy: p, Nodes: 1}, {Policy: p, Steps: 10}} {
		if err := r.Vacuous(few); err != nil {
			t.Errorf("%d nodes, %d steps: %v", few.Nodes, few.Steps, err)
		}
	}
	if r.Seeds--; r.Vacuous(w) != nil {
		t.Errorf("%d seeds are said to be enough", r.Seeds)
	}
}

func TestTheSmallestSeedThatFailsIsReported(t *testing.T) {
	w := StormConfig{Broken: protocol.Broken{DropAtSend: true}}
	one, many := Storms(context.Background(), 1, 50, w, 1), Storms(context.Background(), 1, 50, w, 4)
	if one.Failed == nil || many.Failed == nil || one.Failed.Seed != many.Failed.Seed || one.Failed.Error() == "" {
		t.Errorf("%v, and with several at a time %v", one.Failed, many.Failed)
	}
	if one.Seeds != one.Failed.Seed-1 {
		t.Errorf("%d seeds passed before seed %d", one.Seeds, one.Failed.Seed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := Storms(ctx, 1, 50, StormConfig{}, 2); r.Seeds != 0 || r.Failed != nil {
		t.Errorf("%+v after it was cancelled", *r)
	}
}

func TestStormsDrawSamplesByAllSchemes(t *testing.T) {
	var sampled node.Sampled
	storms := 0
	for seed := uint64(1); seed <= 300; seed++ {
		r, err := Storm(context.Background(), seed, StormConfig{})
		if err != nil {
			t.Fatalf("-seed %d (%s): %v", seed, r.Config, err)
		}
		s := r.Sum()
		if s.Sampled.Accesses() > 0 {
			storms++
		}
		sampled.Local += s.Sampled.Local
		sampled.Replica += s.Sampled.Replica
		sampled.Queued += s.Sampled.Queued
		sampled.Remote += s.Sampled.Remote
		sampled.PutOff += s.Sampled.PutOff
		sampled.Repurposed += s.Sampled.Repurposed
	}
	t.Logf("%+v in %d storms", sampled, storms)
	if storms < 100 || sampled.Local < 100 || sampled.Replica < 100 || sampled.Queued == 0 || sampled.Remote < 100 || sampled.PutOff == 0 || sampled.Repurposed == 0 {
		t.Error("the test is vacuous")
	}
}

func TestStormsScanWhileKeysMove(t *testing.T) {
	var sum Scanned
	for seed := uint64(1); seed <= 600; seed++ {
		r, err := Storm(context.Background(), seed, StormConfig{})
		if err != nil {
			t.Fatalf("-seed %d (%s): %v", seed, r.Config, err)
		}
		sum.Add(r.Scanned)
	}
	t.Logf("%+v", sum)
	if sum.Scans < 500 || sum.Keys < 1000 || sum.Away < 100 || sum.Moving < 100 {
		t.Error("the test is vacuous")
	}
}
