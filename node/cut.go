package node

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
)

// A Which says which rows a cut hands over.
type Which int

const (
	// WholeCut is all rows that anybody has accessed.
	WholeCut Which = iota
	// ChangedCut is those of them that have changed, or were first accessed, since a cut before this one handed
	// them over, or since they were restored as saved. So the rows of a whole cut and of the cuts of changed
	// rows that follow it, of each row the latest, are those of a whole cut in the place of the last one.
	ChangedCut
)

// A Sink takes rows of a cut: their numbers within a table, and for each its value followed
// by the rule's state, one row after the other. It must not keep the slices. An error
// ends the cut.
type Sink func(table int, rows []uint64, floats []float32) error

// CutStats is what a cut was at a node.
type CutStats struct {
	Rows  uint64 `json:"rows"`  // that this node handed over
	Bytes uint64 `json:"bytes"` // … of values and state
	Kept  uint64 `json:"kept"`  // rows of which a copy was made, because they changed before they were handed over
	// Longest is how long a worker of this node waited at the most when it crossed, or for a slow sink.
	Longest time.Duration `json:"longest_ns"`
}

// Cut makes a cut ([godwit.Cutter]) while workers go on, and hands the rows to sink that this
// node owns at that moment: all nodes together hand over each row once that which is of, and no
// other. It is to be called at every node with the same which and the same number, which is greater than that of
// the cut before. Workers begin to cross when the first node calls it, and rows are handed over when all have. Sink is called by one
// goroutine, and not after Cut has returned: Cut, and Close, wait for a call that is under way. A sink that writes to what may not answer
// gives up by itself, as a store of checkpoints does ([checkpoint.Patient]). Rows that were changed before
// they were handed over come first, else rows are in ascending order for the most part.
//
// The rows contain what filters left of pushes from before the boundaries, too. A step from before the cut may have
// read a push from behind it. Where a table bounds staleness, all boundaries are at one clock
// (docs/guarantees.md).
//
// Every node must call it, also one that wants no cut any more: with a sink that fails, and a context that goes on. A node that does not
// call has the others wait until their contexts end, and later cuts are given up until it has called with the number that it left out.
//
// The cut is given up at all nodes, with an error, when the context ends at one, or a sink fails,
// or so many rows are changed before they are saved that copies of them would take more than a tenth
// of the rows of a node, and more than 64 MiB. From half of that on, workers wait at their step boundaries, as long
// as the sink takes rows: 5 s at the most without any. A cut that is given up does not affect workers. Rows that were
// handed over before count as saved all the same, so the next cut must be a WholeCut: a
// ChangedCut is given up, too. A caller that could not keep what it was given, at any node, must ask for
// a WholeCut next by itself.
//
// Who calls it on the goroutine of a worker calls that worker's Rest first ([godwit.Cutter]): the cut waits for it, too.
//
// [checkpoint.Patient]: https://pkg.go.dev/github.com/godwit-ps/godwit/checkpoint#Patient
func (n *Node) Cut(ctx context.Context, number uint64, which Which, sink Sink) (CutStats, error) {
	s, err := n.cuts.Make(ctx, number, which == ChangedCut, sink)
	if err != nil {
		err = fmt.Errorf("node: cut %d: %w", number, err)
	}
	return CutStats{s.Rows, s.Bytes, s.Kept, s.Longest}, err
}

// Restore overwrites rows of a table, values and state, as a [Sink] gets them. Of these
// it takes those that have their home here, and returns how many; so every node may be given
// all rows, at any number of nodes. It is for rows that no worker has accessed yet: once all
// nodes have restored theirs, all workers call WaitSync, Barrier and WaitSync before they begin.
// Rows that are restored as saved are part of a ChangedCut only when they have changed since: that is
// for a checkpoint that builds on the one that they come from.
// An error tells of bad arguments, or that a row has moved away; rows before it are restored.
func (n *Node) Restore(table int, rows []uint64, floats []float32, saved bool) (restored int, err error) {
	if table < 0 || table >= n.cfg.Model.Tables() {
		return 0, fmt.Errorf("node: restore: there is no table %d, the model has %d", table, n.cfg.Model.Tables())
	}
	t, length := n.cfg.Model.Table(table), n.cfg.Model.TableRowLen(table)
	if len(floats) != len(rows)*length {
		return 0, fmt.Errorf("node: restore %d rows of table %q: %w: %d floats, the rows have %d with their state", len(rows), t.Name, godwit.ErrLength, len(floats), len(rows)*length)
	}
	r := &n.cuts.Rows
	for i, row := range rows {
		if row >= t.Rows {
			return restored, fmt.Errorf("node: restore row %d of table %q: %w: the table has %d rows", row, t.Name, godwit.ErrKeyRange, t.Rows)
		}
		k := n.cfg.Model.Key(table, row)
		if n.Home(k) != n.self {
			continue
		}
		if !r.Restore(k, 0, floats[i*length:(i+1)*length], saved) {
			if err := n.Err(); err != nil {
				return restored, fmt.Errorf("node: restore: %w", err)
			}
			return restored, fmt.Errorf("node: restore row %d of table %q: the row has left this node already: restore before workers begin", row, t.Name)
		}
		restored++
	}
	return restored, nil
}
