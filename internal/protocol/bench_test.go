package protocol

import (
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// discard is an Out that takes everything.
type discard struct{}

func (discard) Send(godwit.NodeID, *wire.Record) {}
func (discard) Room(godwit.NodeID) bool          { return true }
func (discard) Takes(godwit.NodeID) bool         { return true }
func (discard) Strained(godwit.NodeID) bool      { return false }
func (discard) Rooms() bool                      { return true }
func (discard) Crowded(godwit.NodeID) bool       { return false }
func (discard) Rests(godwit.NodeID) bool         { return false }
func (discard) Ask(godwit.NodeID, int) bool      { return true }
func (discard) Got(godwit.NodeID, int)           {}
func (discard) Now() int64                       { return 0 }

// Accesses of a node to 64 keys that are there, of 16 floats, as main copies, as main
// copies with a holder elsewhere, and as replicas.
func BenchmarkLocalAccess(b *testing.B) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10_000, Dim: 16})
	if err != nil {
		b.Fatal(err)
	}
	c := newCluster(2, model, placement.Adaptive, false, Broken{})
	main, copy := c.nodes[0], c.nodes[1]
	var alone, shared []godwit.Key
	for k := godwit.Key(0); len(shared) < 64; k++ {
		if c.homes.Home(k) != main.id {
			continue
		}
		main.Want(main, k)
		if len(alone) < 64 {
			alone = append(alone, k)
			main.Unwant(main, k)
			continue
		}
		shared = append(shared, k)
		copy.Want(copy, k)
	}
	vals := make([]float32, 16)
	for i := range vals {
		vals[i] = 1
	}
	if err := c.settle(rand.New(rand.NewPCG(1, 1)), 10_000); err != nil {
		b.Fatal(err)
	}
	for _, x := range []struct {
		what string
		at   *Shard
		keys []godwit.Key
		p    Place
	}{{"owner", main.Shard, alone, AtOwner}, {"holders", main.Shard, shared, AtOwner}, {"replica", copy.Shard, shared, AtReplica}} {
		loop := func(b *testing.B, do func(godwit.Key) Place) {
			b.ReportAllocs()
			for i := range b.N {
				if p := do(x.keys[i&63]); p != x.p {
					b.Fatalf("the access was served at %v, want %v", p, x.p)
				}
			}
		}
		b.Run("pull/"+x.what, func(b *testing.B) {
			loop(b, func(k godwit.Key) Place { return x.at.Pull(k, vals) })
		})
		b.Run("push/"+x.what, func(b *testing.B) {
			clear(vals)
			loop(b, func(k godwit.Key) Place { return x.at.Push(k, vals) })
		})
		b.Run("pushes and rounds/"+x.what, func(b *testing.B) {
			loop(b, func(k godwit.Key) Place {
				if k == x.keys[0] {
					x.at.Round(discard{}, true, false)
				}
				return x.at.Push(k, vals)
			})
		})
	}
}
