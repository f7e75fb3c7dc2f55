package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
)

// latest is a rule of a user: a row is a time and what was pushed at that time,
// and of two the later one stays.
type latest struct{}

func (latest) Name() string                       { return "latest" }
func (latest) StateLen(int) int                   { return 0 }
func (latest) InitState([]float32)                {}
func (latest) Fresh(dim int) int                  { return dim }
func (latest) Pack(value, _, dvalue []float32)    { copy(dvalue, value) }
func (l latest) Merge(value, _, dvalue []float32) { l.Apply(value, nil, dvalue) }
func (latest) Apply(value, _, push []float32) {
	if push[0] > value[0] {
		copy(value, push)
	}
}

// Whatever moves and is replicated, rows end as the join of all pushes, and never
// go back to an earlier one; and rows of the rule set, as one of the last pushes.
func TestJoinsOfRowsAtManyNodesAreThoseOfAllPushes(t *testing.T) {
	pushes := 200 * *scale
	const rows, dim = 6, 3
	seen := tally{}
	variants(t, []int{1, 3}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "latest", Rows: rows, Dim: dim, Rule: latest{}, Hot: first},
			godwit.Table{Name: "max", Rows: rows, Dim: dim, Rule: optim.Max{}}, godwit.Table{Name: "set", Rows: rows, Dim: dim, Rule: optim.Set{}})
		m := cfg.Model
		workers := 2 * nodes
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			id := int(w.ID().Node)*2 + w.ID().Local
			var last [3 * rows][dim]float32 // that was read
			for n := 1; n <= pushes; n++ {
				k := godwit.Key(rng.Uint64N(m.Keys()))
				if err := announce(w, rng, []godwit.Key{k}); err != nil {
					return err
				}
				x := float32(n*workers + id) // times are of one worker each
				if err := w.Push(ctx, []godwit.Key{k}, []float32{x, -x, x}); err != nil {
					return err
				}
				var v [dim]float32
				if err := w.Pull(ctx, []godwit.Key{k}, v[:]); err != nil {
					return err
				}
				table, _ := m.Locate(k)
				switch {
				case v[0] != v[2] || table == 0 && v[1] != -v[0] || table == 2 && v[1] != -v[0]:
					return fmt.Errorf("key %d (%s) reads %v: parts of different pushes", k, m.Table(table).Name, v)
				case table != 2 && (v[0] < x || v[0] < last[k][0]):
					return fmt.Errorf("key %d (%s) reads %v after %v was pushed and %v read", k, m.Table(table).Name, v, x, last[k])
				}
				last[k] = v
				if rng.IntN(8) == 0 {
					w.Advance()
				}
			}
			// In the end everybody pushes once more to every key.
			for k := range godwit.Key(m.Keys()) {
				x := float32((pushes+1)*workers + id)
				if err := w.Push(ctx, []godwit.Key{k}, []float32{x, -x, x}); err != nil {
					return err
				}
			}
			if err := everywhere(ctx, w); err != nil {
				return err
			}
			for k := range godwit.Key(m.Keys()) {
				var v [dim]float32
				if err := w.Pull(ctx, []godwit.Key{k}, v[:]); err != nil {
					return err
				}
				table, _ := m.Locate(k)
				least, most := float32((pushes+1)*workers), float32((pushes+2)*workers-1)
				want := [dim]float32{most, -most, most}
				switch table {
				case 1:
					want[1] = 0
				case 2:
					want[0] = min(max(v[0], least), most)
					want[1], want[2] = -want[0], want[0]
				}
				if v != want {
					return fmt.Errorf("key %d (%s) ends as %v, want %v", k, m.Table(table).Name, v, want)
				}
			}
			return w.Barrier(ctx)
		})
		seen.add(t, c, cfg.Policy)
	})
	if s := seen["adaptive"]; !t.Failed() && (s.Copies == 0 || s.Replica == 0) {
		t.Error("no replicas: the test is vacuous")
	}
}
