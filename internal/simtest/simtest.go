// Package simtest makes simulated clusters for tests of what runs on them.
package simtest

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// Workers is how many workers a node of [Storm] has.
const Workers = 2

// Storm returns a cluster that serves tables under a policy, by its name, over a
// network with jitter and spikes. A step of a worker takes the time step, or half
// as long or as much again. When the test ends, the cluster is closed; until then
// it must have become consistent.
func Storm(t testing.TB, nodes int, policy string, seed uint64, step time.Duration, tables []godwit.Table) *sim.Cluster {
	t.Helper()
	network, err := sim.NetworkNamed("bad")
	if err != nil {
		t.Fatal(err)
	}
	p, err := placement.ByName(policy)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.New(sim.Config{
		Nodes: nodes, Workers: Workers, Seed: seed, Model: m, Policy: p, Network: network,
		Compute: sim.Compute{Step: step, Spread: 0.5, Key: 100 * time.Nanosecond, Frame: 2 * time.Microsecond, Record: 200 * time.Nanosecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// WasStorm fails the test unless keys moved and were replicated many times, each
// where the policy does that at all: else what was to survive a storm has seen
// none.
func WasStorm(t testing.TB, policy string, s node.Stats) {
	t.Helper()
	const many = 100
	moves, copies := placement.AdaptiveMoveOnly.Name() == policy || placement.RelocateAll.Name() == policy || placement.NonUniform.Name() == policy,
		placement.AdaptiveReplicateOnly.Name() == policy || placement.ReplicateAll.Name() == policy
	if policy == placement.Adaptive.Name() {
		copies = true // what all nodes use stays at its home
	}
	if moves && s.Moves < many || copies && s.Copies < many {
		t.Errorf("%s: %d moves and %d replicas are no storm, want %d at least", policy, s.Moves, s.Copies, many)
	}
}
