package protocol

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// wide is the length of vectors that are worth a step of their own.
const wide = 8

// padded is a vector that begins with these.
func padded(x ...float32) []float32 { return append(x, make([]float32, wide-len(x))...) }

func roundingModel(t *testing.T, rule godwit.Rule, f godwit.Filter) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: wide, Rule: rule, Filters: []godwit.Filter{f}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pair is the home of key 0 and a node that holds a replica of it.
func pair(t *testing.T, m *godwit.Model, policy placement.Policy) (c *cluster, home, away *testNode) {
	t.Helper()
	c = newCluster(2, m, policy, false, Broken{})
	home, away = c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	away.Hold(away, 0)
	calm(t, c)
	if !away.holding(0).isReplica() {
		t.Fatalf("node %d has no replica but %v", away.id, away.holding(0))
	}
	return c, home, away
}

func calm(t *testing.T, c *cluster) {
	t.Helper()
	if err := c.settle(rand.New(rand.NewPCG(1, 1)), 10_000); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsRoundedOffAReplicasUpdateStaysThereAndTravelsLater(t *testing.T) {
	for _, f := range []godwit.Filter{filter.FixedPoint(1), filter.FixedPoint(2), filter.BF16{}} {
		c, home, away := pair(t, roundingModel(t, nil, f), placement.ReplicateAll)
		var sent []wire.Record
		c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
			if r.Kind == wire.Delta {
				sent = append(sent, *r)
			}
		}
		sum := make([]float64, wide)
		rng := rand.New(rand.NewPCG(2, 3))
		apart := false
		for range 200 {
			push := padded(rng.Float32(), -rng.Float32()/7, 1)
			for j, x := range push {
				sum[j] += float64(x)
			}
			away.Push(0, push)
			calm(t, c)
			for j, x := range away.row(0) {
				if math.Abs(float64(x)-sum[j]) > 1e-3 {
					t.Fatalf("%s: the replica that was pushed to has %v, want %v", f.Name(), away.row(0), sum)
				}
				if d := math.Abs(float64(home.row(0)[j]) - sum[j]); d > 0.02 {
					t.Fatalf("%s: the owner has %v, want about %v", f.Name(), home.row(0), sum)
				} else if d > 1e-6 {
					apart = true
				}
			}
		}
		if len(sent) != 200 || sent[0].Coding == wire.Raw || !apart {
			t.Errorf("%s: %d updates, the first of coding %d, owner apart: %v; the test is vacuous", f.Name(), len(sent), sent[0].Coding, apart)
		}
		flush := away.BeginFlush()
		calm(t, c)
		if last := sent[len(sent)-1]; !away.Flushed(&flush) || len(sent) != 201 || last.Coding != wire.Raw {
			t.Errorf("%s: a flush sent %d updates, the last of coding %d", f.Name(), len(sent)-200, last.Coding)
		}
		for j, x := range home.row(0) {
			if math.Abs(float64(x)-sum[j]) > 1e-3 || x != away.row(0)[j] {
				t.Errorf("%s: after a flush the owner has %v, the replica %v, want %v", f.Name(), home.row(0), away.row(0), sum)
			}
		}
		if err := c.check(); err != nil {
			t.Error(err)
		}
	}
}

// Bounded staleness does not make rounding useless: what is settled is what was
// sent, rounded.
func TestSettlingLeavesUpdatesRounded(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: wide, Filters: []godwit.Filter{filter.FixedPoint(1)}, Staleness: godwit.Within(1)})
	if err != nil {
		t.Fatal(err)
	}
	c, _, away := pair(t, m, placement.ReplicateAll)
	sent := 0
	c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
		if r.Kind == wire.Delta {
			if sent++; r.Coding == wire.Raw {
				t.Error("an update is not rounded")
			}
		}
	}
	for i := range 50 {
		away.Push(0, padded(float32(i)/7, 0.3, 1))
		f := away.BeginSettle()
		if away.Flushed(&f) {
			t.Fatalf("push %d is settled before it is sent", i)
		}
		calm(t, c)
		if !away.Flushed(&f) {
			t.Fatalf("push %d is not settled when all is calm", i)
		}
		if f = away.BeginSettle(); !away.Flushed(&f) || sent != i+1 {
			t.Fatalf("what is left of push %d is waited for; %d updates were sent", i, sent)
		}
	}
}

// Counts are exact and at once, also where a replica's update sums up many
// pushes, and where a pull is answered.
func TestCountsAreNeverRounded(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: wide, Counts: true, Filters: []godwit.Filter{filter.BF16{Answers: true}}})
	if err != nil {
		t.Fatal(err)
	}
	c, home, away := pair(t, m, placement.ReplicateAll)
	for range 3 {
		away.Push(0, padded(255)) // together too many for 8 bits
	}
	calm(t, c)
	if got := home.row(0)[0]; got != 765 {
		t.Errorf("after all updates were exchanged, the owner has counted %v, want 765", got)
	}
	if u := away.cfg.Update(0); u.Rounds() {
		t.Error("answers are rounded")
	}
}

// Fixed point would not do justice to values and state at the same time.
func TestRowsWithStateAreRoundedByRelativeFiltersOnly(t *testing.T) {
	for _, rule := range []godwit.Rule{optim.AdaGrad{LR: 0.1}, optim.RowAdaGrad{LR: 0.1}, optim.FTRL{LR: 0.1}, optim.Momentum{LR: 0.1, Decay: 0.9}} {
		for _, f := range []godwit.Quantizer{filter.FixedPoint(1), filter.BF16{}} {
			c, home, away := pair(t, roundingModel(t, rule, f), placement.ReplicateAll)
			var codings []wire.Coding
			c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
				if r.Kind == wire.Delta {
					codings = append(codings, r.Coding)
				}
			}
			want := make([]float32, len(home.row(0)))
			rule.InitState(want[wide:])
			rng := rand.New(rand.NewPCG(4, 5))
			for i := range 300 {
				push := padded(rng.Float32(), -rng.Float32()/7, 0.1)
				rule.Apply(want[:wide], want[wide:], push)
				away.Push(0, push)
				calm(t, c)
				if i%50 == 20 {
					home.Push(0, push) // refreshes the replica
					calm(t, c)
					rule.Apply(want[:wide], want[wide:], push)
				}
				if n := c.model.Fresh(0); !near(away.row(0)[:n], want[:n], 0.02) || !near(home.row(0), want, 0.02) {
					t.Fatalf("%s with %s: after push %d the replica is %v, the owner %v, want about %v", rule.Name(), f.Name(), i, away.row(0), home.row(0), want)
				}
			}
			if coded := codings[0]&^wire.Sparse != wire.Raw; coded != f.RelativeError() || len(codings) < 300 {
				t.Errorf("%s with %s: %d updates, the first of coding %d", rule.Name(), f.Name(), len(codings), codings[0])
			}
			flush := away.BeginFlush()
			calm(t, c)
			if !away.Flushed(&flush) || !near(home.row(0)[wide:], want[wide:], 1e-5) || !near(home.row(0)[:wide], away.row(0)[:wide], 1e-6) {
				t.Errorf("%s with %s: after a flush the replica is %v, the owner %v, want %v", rule.Name(), f.Name(), away.row(0), home.row(0), want)
			}
		}
	}
}

// near reports whether floats are equal but for a share of their magnitude.
func near(got, want []float32, share float64) bool {
	for i, x := range got {
		if math.Abs(float64(x-want[i])) > share*(math.Abs(float64(want[i]))+0.1) {
			return false
		}
	}
	return true
}

func TestAnswersAreRoundedOnlyWhereTheFilterSaysSo(t *testing.T) {
	for f, rounds := range map[godwit.Filter]bool{
		filter.Fixed{Bytes: 1, Answers: true}: true, filter.BF16{Answers: true}: true, filter.BF16{}: false, filter.FixedPoint(2): false,
	} {
		c := newCluster(2, roundingModel(t, nil, f), placement.Static, false, Broken{})
		home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
		value := padded(1, 0.123456, -0.654321)
		home.Push(0, value)
		var mean [wide]float64
		const pulls = 20_000
		for i := range uint64(pulls) {
			away.Request(away, &wire.Record{Kind: wire.Pull, Op: i + 1})
			calm(t, c)
			r := away.replies[len(away.replies)-1]
			away.replies = away.replies[:0]
			if (r.Coding != wire.Raw) != rounds || !rounds && !slices.Equal(r.Vals, value) {
				t.Fatalf("%s: the answer is %v of coding %d", f.Name(), r.Vals, r.Coding)
			}
			for j, x := range r.Vals {
				mean[j] += float64(x) / pulls
			}
		}
		for j, x := range value { // a step is 1/127 at most; five standard errors
			if d := math.Abs(mean[j] - float64(x)); d > 5*0.5/127/math.Sqrt(pulls) {
				t.Errorf("%s: answers are %v in the mean, the value is %v", f.Name(), mean, value)
			}
		}
		home.Request(home, &wire.Record{Kind: wire.Pull, Op: 1})
		if r := home.replies[0]; !slices.Equal(r.Vals, value) {
			t.Errorf("%s: the node itself reads %v", f.Name(), r.Vals)
		}
		if !slices.Equal(home.row(0), value) {
			t.Errorf("%s: the row became %v", f.Name(), home.row(0))
		}
	}
}
