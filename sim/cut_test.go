package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// within is by when a verdict comes.
const within = coord.DefaultTTL + time.Second

// cutStorm is a storm in which ways between nodes end. It returns how each worker
// ended, and when the last did.
func cutStorm(t *testing.T, seed uint64, w StormConfig) (errs []error, ended time.Duration, hash uint64) {
	t.Helper()
	s, cfg := newStorm(seed, w)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.c = c
	_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		errs = append(errs, s.work(ctx, w))
		ended = c.Now()
		return nil
	})
	if err != nil {
		t.Fatalf("seed %d (%v): after %v: %v", seed, s, c.Now(), err)
	}
	if err := c.Close(); err != nil && !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("seed %d (%v): close: %v", seed, s, err)
	}
	return errs, ended, c.hash
}

// Ways that end between two nodes, one way or both, end the run in time, and the
// verdict names the two.
func TestStormsWhereTwoNodesDoNotReachEachOtherEndByAVerdict(t *testing.T) {
	verdicts := 0
	for seed := range *seedsFlag / 20 {
		rng := rand.New(rand.NewPCG(7, seed))
		nodes := 2 + rng.IntN(4)
		network := randomNetwork(rng, nodes)
		a := rng.IntN(nodes)
		b := (a + 1 + rng.IntN(nodes-1)) % nodes
		at := time.Duration(rng.Int64N(20_000_000))
		network.Cuts = []Cut{{at, a, b}}
		if rng.IntN(2) == 0 {
			network.Cuts = append(network.Cuts, Cut{at, b, a})
		}
		config := StormConfig{Nodes: nodes, Network: &network, Bounded: rng.IntN(2) == 0}
		errs, ended, hash := cutStorm(t, seed, config)
		if _, again, other := cutStorm(t, seed, config); again != ended || other != hash {
			t.Errorf("seed %d, cuts %v: ended after %v with hash %x, and again after %v with %x", seed, network.Cuts, ended, hash, again, other)
		}
		for _, err := range errs {
			var v *coord.PartitionError
			switch {
			case err == nil:
			case !errors.As(err, &v):
				t.Errorf("seed %d, cuts %v: a worker ended with %v, want a verdict", seed, network.Cuts, err)
			case !strings.Contains(v.Text, fmt.Sprintf("nodes %[1]d (simulated-%[1]d) and %[2]d (simulated-%[2]d) do not", min(a, b), max(a, b))):
				t.Errorf("seed %d, cuts %v: the verdict is that %s", seed, network.Cuts, v.Text)
			default:
				verdicts++
			}
		}
		if ended > at+within {
			t.Errorf("seed %d, cuts %v: all ended after %v, want %v", seed, network.Cuts, ended, at+within)
		}
	}
	t.Logf("%d workers heard a verdict", verdicts)
	if verdicts < 50 {
		t.Errorf("only %d workers heard a verdict: the test is vacuous", verdicts)
	}
}

// A node that reaches nobody, but the coordinator, is the one that the verdict
// names first.
func TestAVerdictNamesTheNodeThatReachesNobody(t *testing.T) {
	for victim := range 4 {
		network, err := NetworkNamed("1g")
		if err != nil {
			t.Fatal(err)
		}
		at := 3 * time.Second
		for i := range 4 {
			if i != victim {
				network.Cuts = append(network.Cuts, Cut{at, i, victim}, Cut{at, victim, i})
			}
		}
		ended, err := busy(t, 4, network)
		var v *coord.PartitionError
		if !errors.As(err, &v) || !strings.HasPrefix(v.Text, fmt.Sprintf("node %d (simulated-%d) reaches none of the nodes", victim, victim)) {
			t.Errorf("node %d is cut off: the run ended with %v", victim, err)
		}
		if ended < at+coord.DefaultTTL || ended > at+within {
			t.Errorf("node %d is cut off at %v: the run ended after %v", victim, at, ended)
		}
	}
}

// busy has workers access keys of all nodes until the run ends, and returns
// when and why.
func busy(t *testing.T, nodes int, network Network) (time.Duration, error) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Network: network, Compute: Compute{Step: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	var end error
	var ended time.Duration
	_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(1, uint64(w.ID().Node)))
		var err error
		for err == nil && c.Now() < time.Minute {
			err = w.Push(ctx, []godwit.Key{godwit.Key(rng.Uint64N(m.Keys()))}, []float32{1, 1})
			w.Advance()
		}
		end, ended = err, max(ended, c.Now())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil && !errors.Is(err, godwit.ErrPeerLost) {
		t.Error(err)
	}
	return ended, end
}

// A partition that is over before the lease is costs time and nothing else.
func TestAPartitionShorterThanTheLeaseEndsNoRun(t *testing.T) {
	network, err := NetworkNamed("1g")
	if err != nil {
		t.Fatal(err)
	}
	for from := time.Second; from < 50*time.Second; from += 11 * time.Second {
		network.Partitions = append(network.Partitions, Partition{From: from, To: from + coord.DefaultTTL - 100*time.Millisecond, Nodes: []int{1}})
	}
	ended, err := busy(t, 3, network)
	if err != nil {
		t.Errorf("after %v the run ended with %v", ended, err)
	}
}

func TestStormsWithPartitionsShorterThanTheLeaseKeepAllPromises(t *testing.T) {
	for seed := range *seedsFlag / 20 {
		rng := rand.New(rand.NewPCG(8, seed))
		nodes := 2 + rng.IntN(4)
		network := randomNetwork(rng, nodes)
		p := Partition{From: time.Duration(rng.Int64N(20_000_000)), Nodes: []int{rng.IntN(nodes)}}
		p.To = p.From + time.Duration(rng.Int64N(int64(coord.DefaultTTL-100*time.Millisecond)))
		network.Partitions = []Partition{p}
		r, err := Storm(t.Context(), seed, StormConfig{Nodes: nodes, Network: &network, Bounded: rng.IntN(2) == 0})
		if err != nil {
			t.Errorf("seed %d (%s), cut off %v: %v", seed, r.Config, p, err)
		}
	}
}

// Nodes that have nothing to say to each other exchange less than 10 bytes a
// second, and find out in the end who does not answer.
func TestIdleConnectionsCostLittleAndAreLookedAfter(t *testing.T) {
	const nodes = 3
	network, _ := NetworkNamed("1g")
	cut := 40 * time.Second
	network.Cuts = []Cut{{cut, 2, 1}}
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Network: network})
	if err != nil {
		t.Fatal(err)
	}
	sent := func() (n uint64) {
		for i := range nodes {
			n += c.Stats(i).SentBytes
		}
		return n
	}
	_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		if w.ID().Node != 0 {
			w.Barrier(ctx)
			if err := c.Node(int(w.ID().Node)).Err(); err == nil || !strings.Contains(err.Error(), "nodes 1 (simulated-1) and 2 (simulated-2) do not") || c.Now() > cut+2*within {
				t.Errorf("after %v node %d ended with %v", c.Now(), w.ID().Node, err)
			}
			return nil
		}
		h := c.hosts[0]
		c.park(h, time.Second, [3]<-chan struct{}{})
		before := sent()
		c.park(h, 30*time.Second, [3]<-chan struct{}{})
		rate := float64(sent()-before) / 30 / (nodes * (nodes - 1) / 2)
		t.Logf("%.1f bytes a second on an idle connection, both ways", rate)
		if rate >= 10 || rate == 0 {
			t.Errorf("an idle connection carries %v bytes a second", rate)
		}
		c.park(h, 30*time.Second, [3]<-chan struct{}{})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil && !errors.Is(err, godwit.ErrPeerLost) {
		t.Error(err)
	}
}
