package protocol

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// A value is rounded only if the request allows it, the table does, and bytes bound the network.
func TestAnAnswerIsRoundedOnlyWhereAllAllowIt(t *testing.T) {
	const exact, near = 1 + 1.0/512, 1.0
	m, err := godwit.NewModel(
		godwit.Table{Name: "trained", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "added", Rows: 8, Dim: 2, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "counted", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Counts: true, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "bounded", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Staleness: godwit.Within(1), Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "filtered", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.BF16{Answers: true}}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for table := range m.Tables() {
		for i := range 4 {
			rough, strained := i&1 != 0, i&2 != 0
			c := newCluster(2, m, placement.Static, false, Broken{})
			c.strained = func() bool { return strained }
			k := m.Key(table, 0)
			asker := c.nodes[1-c.homes.Home(k)]
			asker.Request(asker, &wire.Record{Kind: wire.Pull, Key: k, Op: 7, Rough: rough})
			calm(t, c)
			if len(asker.replies) != 1 {
				t.Fatalf("%d answers", len(asker.replies))
			}
			a := asker.replies[0]
			want, coding := float32(exact), wire.Raw
			if rough && strained && table == 0 {
				want, coding = near, wire.BF16
			}
			if table < 4 && (a.Vals[0] != want || a.Coding != coding) || table == 4 && a.Coding != wire.BF16 {
				t.Errorf("table %q, may be rounded: %v, strained: %v: the answer is %v of coding %d, want %v of %d", m.Table(table).Name, rough, strained, a.Vals, a.Coding, want, coding)
			}
		}
	}
}

// A wide row of which few floats changed travels without the others, unchanged.
func TestUpdatesOfFewFloatsTakeFewBytes(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		changed int
		want    wire.Coding
	}{{3, wire.Sparse}, {50, wire.Sparse}, {51, wire.Raw}, {100, wire.Raw}} {
		c, home, away := pair(t, m, placement.ReplicateAll)
		var sent []wire.Coding
		c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
			if r.Kind == wire.Delta || r.Kind == wire.Refresh {
				sent = append(sent, r.Coding)
			}
		}
		push := make([]float32, 100)
		for i := range x.changed {
			push[i] = 1.0 / 3
		}
		away.Push(0, push)
		calm(t, c)
		home.Push(0, push)
		calm(t, c)
		if !slices.Equal(sent, []wire.Coding{x.want, x.want}) || !slices.Equal(home.row(0), away.row(0)) {
			t.Errorf("%d of 100 floats changed: sent as %v, want %v twice; the owner has %v, the copy %v", x.changed, sent, x.want, home.row(0), away.row(0))
		}
	}
}
