package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
)

// An Env is the environment that a task runs in: this node's workers and its connection
// to the other nodes. Run does not change it, and uses a worker from one goroutine at a time.
type Env struct {
	// Workers are the workers of this node, at least one. Their number may differ
	// between nodes.
	Workers []godwit.Worker
	// Node is the number of this node and Nodes how many there are. Nodes 0
	// means 1.
	Node, Nodes int
	// Exchange sends payload to all nodes, waits for theirs, and returns all by node
	// number. All nodes call it with the same names in the same order.
	// A run of one node needs none.
	Exchange func(ctx context.Context, name string, payload []byte) ([][]byte, error)
	// Ask sends a question to node 0, and calls deliver with the answer. wait returns when
	// deliver has returned, or with an error; any number of goroutines may wait. It is not
	// used at node 0. A run of one node needs none.
	Ask func(question []byte, deliver func(answer []byte)) (wait func(context.Context) error)
	// Serve has answer called, at node 0, for the questions of other nodes, those included
	// that have come already; one at a time, and answer does not wait. With nil, questions wait for the
	// next call of Serve. It is called of every training, also of one that asks nothing: so others may answer questions of
	// their own beside it. It is not used at other nodes.
	Serve func(answer func(node int, question []byte) []byte)
	// OnCut, if set, is told what is done at each cut of workers that are a
	// [godwit.Cutter], when the last worker of this node has crossed into it: the epochs before, and
	// what this node has trained of those under way. [MergeStates] of all nodes' is that of the run.
	// Cuts that are asked for before Started are not told, nor those after Run.
	// It is called by a worker at the end of a step, must be short, and may keep the state but not change
	// it.
	OnCut func(cut uint64, s *State, err error)
	// Started, if set, is called when all nodes have begun.
	Started func()
	// Stop, when closed at any node, ends the run in order: that node's workers
	// finish their batch, the other nodes' their epoch (all the epoch, if they
	// train in lockstep), and the model is evaluated as it is. nil never stops.
	Stop <-chan struct{}
	// Begin, if set, is what an earlier run had done, whose rows the model has: this run goes on behind it. All
	// nodes have the same one.
	Begin *State
	// EpochEnd, if set, is called at all nodes when an epoch was trained whole, and evaluated where that was due, while no
	// worker does anything; and once more where the run ends otherwise: when it was stopped, before the evaluation, and when there was
	// nothing to train. A state behind a whole epoch is equal at all nodes. Of a run that was stopped within one it has what this node
	// has trained, and [MergeStates] of all nodes' is that of the run. EpochEnd may keep the state, but not change it. An error
	// ends the run. Set it at all nodes or at none.
	EpochEnd func(ctx context.Context, s *State) error
	// Beside, if set, is offered each evaluation by which the run cannot end, at all nodes, while no worker does anything and all updates
	// are visible everywhere; s is the state behind the epoch. It may have it take place while training goes on: it keeps the model as it is
	// now, has evaluate called at one node by another goroutine, and returns what waits for the state that evaluate returned. That is called at all
	// nodes, which get equal states, when the next epoch has ended; Progress and EpochEnd are not told of the evaluation and of this epoch's end. Where nothing is returned, the evaluation takes place at
	// once. A state that wait returns may lack the evaluation, if it could not take place.
	Beside func(ctx context.Context, s *State, evaluate Evaluator) (wait func(context.Context) (*State, error), err error)
	// Progress is called with each event, from the goroutine that called Run. It may be
	// nil.
	Progress func(Event)
	// Seen, if set, counts the examples of this node's losses as they are trained.
	Seen *atomic.Int64
	// Fork runs do(0) … do(n-1) concurrently and returns when all have
	// returned. nil runs each in a goroutine; a simulation puts its own
	// scheduler here.
	Fork func(n int, do func(i int))
}

// check reports what is missing.
func (e *Env) check() error {
	switch {
	case len(e.Workers) == 0:
		return errors.New("train: no workers: Env.Workers needs at least one worker of this node")
	case e.Nodes < 0 || e.Node < 0 || e.Node >= e.nodes():
		return fmt.Errorf("train: node %d of %d nodes: want 0 … nodes-1", e.Node, e.nodes())
	case e.Nodes > 1 && e.Exchange == nil:
		return fmt.Errorf("train: a run of %d nodes needs Env.Exchange", e.Nodes)
	case e.Nodes > 1 && e.Node > 0 && e.Ask == nil, e.Nodes > 1 && e.Node == 0 && e.Serve == nil:
		return fmt.Errorf("train: node %d of %d nodes needs Env.Ask, or Env.Serve at node 0", e.Node, e.Nodes)
	}
	return nil
}

func (e *Env) nodes() int { return max(e.Nodes, 1) }

func (e *Env) progress(ev Event) {
	if e.Progress != nil {
		e.Progress(ev)
	}
}

func goroutines(n int, do func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// Each calls do for every worker of this node, concurrently, and returns when
// all have returned. The first error cancels the context of the others and is
// the one that is returned.
func (e *Env) Each(ctx context.Context, do func(ctx context.Context, i int, w godwit.Worker) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fork := e.Fork
	if fork == nil {
		fork = goroutines
	}
	fork(len(e.Workers), func(i int) {
		if err := do(ctx, i, e.Workers[i]); err != nil {
			cancel(err) // only the first cause is kept, because the others may follow from it
		}
	})
	return context.Cause(ctx)
}

// Gather is Exchange; in a run of one node it returns the payload.
func (e *Env) Gather(ctx context.Context, name string, payload []byte) ([][]byte, error) {
	if e.Exchange == nil {
		return [][]byte{payload}, nil
	}
	all, err := e.Exchange(ctx, name, payload)
	if err != nil {
		return nil, fmt.Errorf("train: exchange %q: %w", name, err)
	}
	if len(all) != e.nodes() {
		return nil, fmt.Errorf("train: exchange %q: %d payloads from %d nodes", name, len(all), e.nodes())
	}
	return all, nil
}

// Sum adds up vals over all nodes, element by element, in the order of the
// nodes, so that every node gets the same bits. Every node calls it, with
// equally many values.
func (e *Env) Sum(ctx context.Context, name string, vals ...float64) ([]float64, error) {
	payload := make([]byte, 0, 8*len(vals))
	for _, v := range vals {
		payload = binary.LittleEndian.AppendUint64(payload, math.Float64bits(v))
	}
	all, err := e.Gather(ctx, name, payload)
	if err != nil {
		return nil, err
	}
	sum := make([]float64, len(vals))
	for node, p := range all {
		if len(p) != len(payload) {
			return nil, fmt.Errorf("train: exchange %q: node %d sent %d bytes, want %d", name, node, len(p), len(payload))
		}
		for i := range sum {
			sum[i] += math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
	}
	return sum, nil
}

// Share returns the part of n items, from … to-1, that worker i of this node has
// to do when all workers of all nodes divide them. Each node gets about the same number
// of items, however many workers it has.
func (e *Env) Share(n, i int) (from, to int) {
	a, b := n*e.Node/e.nodes(), n*(e.Node+1)/e.nodes()
	return a + (b-a)*i/len(e.Workers), a + (b-a)*(i+1)/len(e.Workers)
}

// SumOverWorkers calls do for every worker of this node, concurrently, with a slice of
// its own to add to. It returns the element-wise sum of all workers' slices of all
// nodes: every node gets the same bits. Every node calls it, with an equal number of
// figures, each time with another name.
func (e *Env) SumOverWorkers(ctx context.Context, name string, figures int, do func(ctx context.Context, i int, w godwit.Worker, sums []float64) error) ([]float64, error) {
	sums := make([][]float64, len(e.Workers))
	err := e.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		sums[i] = make([]float64, figures)
		return do(ctx, i, w, sums[i])
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sums[1:] {
		for i, x := range s {
			sums[0][i] += x
		}
	}
	return e.Sum(ctx, name, sums[0]...)
}

// EvenlySpaced returns at most n items, evenly spaced; all of them if n is 0.
func EvenlySpaced[T any](items []T, n int) []T {
	if n == 0 || len(items) <= n {
		return items
	}
	some := make([]T, n)
	for i := range some {
		some[i] = items[i*len(items)/n]
	}
	return some
}

// stopping reports whether Stop was closed.
func (e *Env) stopping() bool {
	select {
	case <-e.Stop:
		return true
	default:
		return false
	}
}
