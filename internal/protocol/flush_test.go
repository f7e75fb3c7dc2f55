package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// A key may be on the list of a former replica and on that of its present one. A flush follows it once, and the list does not grow.
func TestAFlushFollowsAKeyOnce(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 12, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.AdaptiveReplicateOnly, true, Broken{})
	n := c.nodes[0]
	k := godwit.Key(0)
	for n.cfg.HomedHere(k) {
		k++
	}
	n.Want(n, k)
	for ps := c.busy(); len(ps) > 0; ps = c.busy() {
		if err := c.deliver(ps[0]); err != nil {
			t.Fatal(err)
		}
	}
	n.Push(k, []float32{1, 1})
	n.unsettled = append(n.unsettled, k, k)
	for range 3 { // the turns of the list are told apart
		if f := n.BeginFlush(); f.Len() != 1 || len(n.unsettled) != 1 {
			t.Fatalf("a flush follows %d updates, and %d are on the list, want 1", f.Len(), len(n.unsettled))
		}
		n.unsettled = append(n.unsettled, k)
	}
}

// A flush must find what a look at every row finds: whatever was pushed, set,
// sent, answered, dropped and asked for again before.
func TestAFlushMissesNoUpdateUnderWay(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 12, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(3, model, placement.AdaptiveReplicateOnly, true, Broken{})
		wanted := map[[2]uint64]bool{}
		for range 600 {
			n := c.nodes[rng.IntN(3)]
			k := godwit.Key(rng.Uint64N(12))
			at := [2]uint64{uint64(n.id), uint64(k)}
			switch op := rng.IntN(12); {
			case op < 2 && !wanted[at]:
				n.Want(n, k)
				wanted[at] = true
			case op < 2 && rng.IntN(3) == 0:
				n.Unwant(n, k)
				wanted[at] = false
			case op < 4:
				n.Push(k, []float32{1, 1})
			case op < 5:
				n.Request(n, &wire.Record{Kind: wire.Set, Key: k, Op: 1, Vals: []float32{2, 2}})
			case op < 6:
				n.Round(n, false, false)
			default:
				if ps := c.busy(); len(ps) > 0 {
					if err := c.deliver(ps[rng.IntN(len(ps))]); err != nil {
						t.Fatal(err)
					}
				}
			}
			var want, got []godwit.Key
			n.st.Each(func(ref store.Ref) {
				h := n.st.Header(ref)
				if !stateOf(h).isReplica() {
					return
				}
				switch d, st := n.replica(h), stateOf(h); {
				case st == draining:
					kinds["draining"]++
				case d.unsent != none:
					kinds["dirty"]++
				case st == inFlight && !d.flight.present():
					kinds["set"]++
				case st == inFlight:
					kinds["sent"]++
				default:
					return
				}
				want = append(want, h.Key)
			})
			f := n.BeginFlush()
			for _, x := range f.todo {
				got = append(got, x.key)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: the flush follows %v, under way are %v", seed, got, want)
			}
			if l := len(n.unsettled); l > 12 {
				t.Fatalf("seed %d: the list of 12 keys has %d entries", seed, l)
			}
		}
	}
	for _, k := range []string{"draining", "dirty", "set", "sent"} {
		if kinds[k] < 100 {
			t.Errorf("only %d replicas were %s: %v", kinds[k], k, kinds)
		}
	}
}
