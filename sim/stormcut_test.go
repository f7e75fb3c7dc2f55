package sim

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/placement"
)

// The rows of a cut have what each worker had pushed and set when it crossed, once, and nothing that
// it did later: wherever the rows and updates were, under every policy and rule.
func TestCutsHaveJustWhatCameBeforeThem(t *testing.T) {
	first, n := uint64(1), uint64(400)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	} else if testing.Short() {
		n /= 10
	}
	var did DidCuts
	var moves, copies uint64
	for seed := first; seed < first+n; seed++ {
		for _, in := range []StormConfig{{Cuts: 3}, {Cuts: 3, Filters: []godwit.Filter{}, Policy: restless.Policy{}, Nodes: 4}, {Cuts: 3, Bounded: true}} {
			r, err := Storm(context.Background(), seed, in)
			if err != nil {
				t.Fatalf("-seed %d (%s): %v", seed, r.Config, err)
			}
			did.Cuts += r.Cut.Cuts
			did.Rows += r.Cut.Rows
			did.Kept += r.Cut.Kept
			did.Spared += r.Cut.Spared
			sum := r.Sum()
			moves, copies = moves+sum.Moves, copies+sum.Copies
		}
	}
	t.Logf("%+v, %d moves, %d copies", did, moves, copies)
	if n >= 60 && (did.Rows < 1000 || did.Kept < 100 || did.Spared < 100 || moves < 1000 || copies < 100) {
		t.Error("the test is vacuous")
	}
}

// A storm with cuts is the same each time.
func TestStormsWithCutsAreReplayed(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		var hashes [2]uint64
		for i := range hashes {
			r, err := Storm(context.Background(), seed, StormConfig{Cuts: 3})
			if err != nil {
				t.Fatalf("-seed %d (%s): %v", seed, r.Config, err)
			}
			hashes[i] = r.Hash
		}
		if hashes[0] != hashes[1] {
			t.Errorf("-seed %d: hashes %x and %x", seed, hashes[0], hashes[1])
		}
	}
}

// Storms notice when a rule of cuts is switched off.
func TestWithoutAnyOneRuleOfCutsStormsFail(t *testing.T) {
	for _, m := range []struct {
		rule   string
		in     StormConfig
		broken protocol.BrokenCut
	}{
		{"K1, a copy is kept", StormConfig{}, protocol.BrokenCut{KeepNone: true}},
		{"K2, late changes are made to both", StormConfig{}, protocol.BrokenCut{LateToOne: true}},
		{"K3, updates are of one side", StormConfig{Policy: placement.Adaptive}, protocol.BrokenCut{MixSides: true}},
		{"K3, late changes of replicas", StormConfig{Policy: placement.Adaptive}, protocol.BrokenCut{LateLast: true}},
		{"K3, a set waits for them", StormConfig{Policy: placement.Adaptive}, protocol.BrokenCut{SetAtOnce: true}},
		{"K4, rows with copies stay", StormConfig{Policy: restless.Policy{}}, protocol.BrokenCut{MoveKept: true}},
		{"K4, marks move along", StormConfig{Policy: restless.Policy{}}, protocol.BrokenCut{ForgetMark: true}},
		{"K5, they are saved where they arrive", StormConfig{Policy: restless.Policy{}}, protocol.BrokenCut{SaveOnce: true}},
		{"K5, they stay until then", StormConfig{Bounded: true, Policy: placement.RelocateAll, Nodes: 3, Workers: 1, Cuts: 6}, protocol.BrokenCut{MoveOn: true}},
		{"K6, changes clear the bit", StormConfig{}, protocol.BrokenCut{StaySaved: true}},
		{"K6, late changes of copies too", StormConfig{Cuts: 20, Nodes: 4, Workers: 1, Policy: placement.Static}, protocol.BrokenCut{CopySaved: true}},
		{"K6, the bit moves as it is", StormConfig{Policy: restless.Policy{}}, protocol.BrokenCut{MoveSaved: true}},
		{"bounded tables, one clock", StormConfig{Bounded: true}, protocol.BrokenCut{OwnClocks: true}},
		{"all nodes have settled first", StormConfig{}, protocol.BrokenCut{SealEarly: true}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			m.in.Cuts = max(m.in.Cuts, 3)
			whole := m.in
			m.in.BrokenCut = m.broken
			stormsNotice(t, 4000, whole, m.in)
		})
	}
}
