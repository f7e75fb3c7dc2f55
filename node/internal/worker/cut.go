package worker

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/filtering"
)

// This file is the worker as cuts see it ([cut.Party]).

// OnCut has f called when the worker crosses into a cut ([godwit.Cutter]).
func (w *Worker) OnCut(f func(cut uint64)) {
	w.enter()
	defer w.leave()
	w.party.OnCut(f)
}

// Rest says that the worker does nothing until its next call, which comes by again.
func (w *Worker) Rest() {
	w.enter()
	w.party.Rest()
	w.parked = true // and inside
}

// cross changes the side of what the worker pushes and sets from now on, and of what filters leave
// of it.
func (w *Worker) cross() {
	w.rows.Mark ^= protocol.OddMark
	w.filters.Residual().Cross()
}

// overwrite takes what all workers of the node keep of keys that are about to be set, and the right to push it. What others have taken
// to push it has been answered then. What is from another side of a cut is pushed first: that side has it.
func (w *Worker) overwrite(ctx context.Context, keys []godwit.Key) ([]filtering.Overwritten, error) {
	for {
		if err := w.right(ctx, "set"); err != nil {
			return nil, err
		}
		if took, ok := w.g.Filters.Overwrite(keys, w.rows.Mark != 0); ok {
			return took, nil
		}
		w.g.Filters.Right() <- struct{}{}
		if err := w.pushKept(ctx, "set"); err != nil {
			return nil, err
		}
	}
}

// PushAside pushes what filters had left of pushes when workers crossed into a cut. When it
// returns nil, nothing of that is under way any more. It is for one goroutine at a time.
func (g *Group) PushAside(ctx context.Context) error {
	w := g.saver
	if !g.Filters.Kept() {
		return nil
	}
	if err := w.right(ctx, "cut"); err != nil {
		return err
	}
	defer func() { g.Filters.Right() <- struct{}{} }()
	for _, r := range g.Filters.Residuals() {
		if err := w.pushAsideOf(ctx, "cut", r); err != nil {
			return err
		}
	}
	w.out.Flush()
	return nil
}
