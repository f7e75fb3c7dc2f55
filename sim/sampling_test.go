package sim

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// sampled has the workers of four nodes take samples of a table of 20,000 rows,
// announced ten steps ahead and pulled in quarters, beside direct accesses to
// a few hundred rows of their own.
func sampled(t testing.TB, p placement.Policy, scheme sampling.Scheme) (node.Stats, *Result) {
	t.Helper()
	const rows, per, steps, ahead = 20_000, 40, 80, 10
	network, err := NetworkNamed("10g")
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: 4, Workers: 2, Seed: 1, Model: model(t, rows, 8), Policy: p, Network: network,
		Samplers: []sampling.Spec{{Name: "s", Dist: sampling.Uniform(rows), Scheme: scheme}},
		Compute:  Compute{Step: 500 * time.Microsecond, Spread: 0.1, Key: 100 * time.Nanosecond, Frame: 3 * time.Microsecond, Record: 200 * time.Nanosecond, Round: 100 * time.Nanosecond}})
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		var ids []godwit.SampleID
		keys, vals := make([]godwit.Key, per/4), make([]float32, per/4*8)
		first := godwit.Key(w.ID().Node)*5000 + godwit.Key(w.ID().Local)*2500
		for i := range steps + ahead {
			if i < steps {
				id, err := w.PrepareSample(0, per, w.Clock()+ahead, w.Clock()+ahead+1)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			data := []godwit.Key{first + godwit.Key(i), first + godwit.Key(i*7%300)}
			if err := w.Intent(data, w.Clock()+1, w.Clock()+2); err != nil {
				return err
			}
			if err := w.Pull(ctx, data, make([]float32, 16)); err != nil {
				return err
			}
			for range 4 {
				if i < ahead {
					continue
				}
				if err := w.PullSample(ctx, ids[i-ahead], keys, vals); err != nil {
					return err
				}
			}
			if err := w.Push(ctx, data, make([]float32, 16)); err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Sum(), r
}

// The less a level promises, the less is sent: that is what levels are for.
func TestWeakerLevelsSendLess(t *testing.T) {
	for _, p := range []placement.Policy{placement.AdaPM, placement.RelocateAll} {
		stats := map[string]node.Stats{}
		for _, scheme := range sampling.Schemes() {
			s, r := sampled(t, p, scheme)
			stats[scheme.Name()] = s
			t.Logf("%s, %s: %.1f kB, %d moves and copies for %d samples, %d of them remote and %d queued in %d slow calls, %v",
				p.Name(), scheme.Name(), float64(r.Bytes)/1e3, s.Moves+s.Copies, s.Sampled.Accesses(), s.Sampled.Remote, s.Sampled.Queued, s.SlowCalls, r.Elapsed)
		}
		moved := func(name string) uint64 { s := stats[name]; return s.Moves + s.Copies }
		wait := func(name string) uint64 { s := stats[name]; return s.Sampled.Remote + s.Sampled.Queued }
		if 3*moved("reuse") > moved("prepared") {
			t.Errorf("%s: %d keys came to where they were used 16 times, %d where once", p.Name(), moved("reuse"), moved("prepared"))
		}
		if a, b := stats["postpone"].SlowCalls, stats["reuse"].SlowCalls; a > b {
			t.Errorf("%s: %d calls waited with postponing, %d without", p.Name(), a, b)
		}
		if n := wait("local") + wait("repurpose"); 1000*n > stats["local"].Sampled.Accesses() {
			t.Errorf("%s: %d samples of best effort waited", p.Name(), n)
		}
	}
}

// A sample that cannot be is refused in words, as by a real node, and costs nothing.
func TestASampleThatCannotBeIsRefused(t *testing.T) {
	c := cluster(t, Config{Nodes: 1, Workers: 1, Model: model(t, 10, 1), Compute: Compute{Sample: time.Millisecond},
		Samplers: []sampling.Spec{{Name: "s", Dist: sampling.Uniform(10), Scheme: sampling.Prepared{}}}})
	r, err := c.Run(context.Background(), func(_ context.Context, w godwit.Worker) error {
		for _, x := range [][2]int{{1, 5}, {-1, 5}, {0, -5}} {
			if _, err := w.PrepareSample(x[0], x[1], 1, 2); err == nil {
				t.Errorf("%d samples of sampler %d", x[1], x[0])
			}
		}
		w.Advance()
		return nil
	})
	if err != nil || r.Elapsed != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
