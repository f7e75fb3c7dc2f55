package node

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/cut"
)

// A Sink takes rows of a cut: their numbers within a table, and for each its value followed
// by the rule's state, one row after the other. It must not keep the slices. An error
// ends the cut.
type Sink func(table int, rows []uint64, floats []float32) error

// CutStats is what a cut was at a node.
type CutStats struct {
	Rows  uint64 `json:"rows"`  // that this node wrote
	Bytes uint64 `json:"bytes"` // … of values and state
}

// Rest has no row of this node begin to move until it is called with false. When all nodes rest, and then
// all workers have called WaitSync, Barrier, WaitSync and Barrier, no row moves any more. Keys that
// are announced are accessed where they are meanwhile.
func (n *Node) Rest(on bool) { n.rows.Rest(on) }

// Cut hands the rows of the model that this node owns to sink: all nodes together hand over each
// row once that anybody has accessed, and no other. Nodes call it at the same time, when all
// rest ([Node.Rest]), and while no worker does anything and no row moves.
func (n *Node) Cut(ctx context.Context, number uint64, sink Sink) (CutStats, error) {
	var s CutStats
	err := n.cutRows().Each(func() error { return n.over(ctx) }, func(table int, rows []uint64, floats []float32) error {
		s.Rows += uint64(len(rows))
		s.Bytes += 4 * uint64(len(floats))
		return sink(table, rows, floats)
	})
	if err != nil {
		return s, fmt.Errorf("node: cut %d: %w", number, err)
	}
	return s, nil
}

// over says why a cut cannot go on; nil if it can.
func (n *Node) over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return n.Err()
}

func (n *Node) cutRows() *cut.Rows { return &cut.Rows{Set: n.rows, Proto: n.proto} }

// Restore overwrites rows of a table, values and state, as a [Sink] gets them. Of these
// it takes those that have their home here, and returns how many; so every node may be given
// all rows, at any number of nodes. It is for rows that no worker has accessed yet: once all
// nodes have restored theirs, all workers call WaitSync, Barrier and WaitSync before they begin.
// An error tells of bad arguments, or that a row has moved away; rows before it are restored.
func (n *Node) Restore(table int, rows []uint64, floats []float32) (restored int, err error) {
	if table < 0 || table >= n.model.Tables() {
		return 0, fmt.Errorf("node: restore: there is no table %d, the model has %d", table, n.model.Tables())
	}
	t, length := n.model.Table(table), n.model.TableRowLen(table)
	if len(floats) != len(rows)*length {
		return 0, fmt.Errorf("node: restore %d rows of table %q: %w: %d floats, the rows have %d with their state", len(rows), t.Name, godwit.ErrLength, len(floats), len(rows)*length)
	}
	r := n.cutRows()
	for i, row := range rows {
		if row >= t.Rows {
			return restored, fmt.Errorf("node: restore row %d of table %q: %w: the table has %d rows", row, t.Name, godwit.ErrKeyRange, t.Rows)
		}
		k := n.model.Key(table, row)
		if n.Home(k) != n.self {
			continue
		}
		if !r.Restore(k, floats[i*length:(i+1)*length]) {
			if err := n.Err(); err != nil {
				return restored, fmt.Errorf("node: restore: %w", err)
			}
			return restored, fmt.Errorf("node: restore row %d of table %q: the row has left this node already: restore before workers begin", row, t.Name)
		}
		restored++
	}
	return restored, nil
}
