package protocol

import (
	"math"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A key whose epochs cannot grow any more stays where it is, and is served there.
func TestAKeyThatHasMovedAsOftenAsEpochsCountStays(t *testing.T) {
	for _, p := range []placement.Policy{placement.RelocateAll, placement.AdaPM, placement.Adaptive} {
		model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, last := range []godwit.Epoch{math.MaxUint32 - 1, math.MaxUint32} {
			c := newCluster(2, model, p, true, Broken{})
			k := godwit.Key(0)
			for c.homes.Home(k) != 0 {
				k++
			}
			n, other := c.nodes[0], c.nodes[1]
			n.Push(k, []float32{3})
			ref, _ := n.st.Find(k)
			n.st.Header(ref).Epoch = last
			other.Want(other, k)
			calm(t, c)
			if p == placement.Adaptive { // the key moves with the first update of the copy
				other.Push(k, []float32{1})
				calm(t, c)
			}
			moved := other.holding(k) == owner
			if want := last < math.MaxUint32; moved != want {
				t.Errorf("%s: a key of epoch %d has moved: %v, want %v", p.Name(), last, moved, want)
			}
			if err := c.check(); err != nil && last == math.MaxUint32 {
				t.Errorf("%s: %v", p.Name(), err)
			}
		}
	}
}
