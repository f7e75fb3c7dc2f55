package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/internal/events"
	"github.com/godwit-ps/godwit/job"
)

// A cost is the processor time of an example in a run, in microseconds.
type cost struct {
	first float64 // in the first epoch
	later float64 // in the others
}

// train runs a command that prints the events of a run, and reads the clocks of its
// processes whenever an epoch ends.
func train(ctx context.Context, binary string, args []string, clock func(pid int) (time.Duration, error)) (cost, error) {
	r := &run{clock: clock}
	return r.cost(events.Run(ctx, binary, args, nil, r.event))
}

// trainAtOnce runs a command several times at once, and returns what an example took in the mean.
func trainAtOnce(ctx context.Context, runs int, binary string, args []string, clock func(pid int) (time.Duration, error)) (cost, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	costs := make([]cost, runs)
	var wg sync.WaitGroup
	for i := range costs {
		wg.Go(func() {
			c, err := train(ctx, binary, args, clock)
			if err != nil {
				cancel(err) // the first is the cause
			}
			costs[i] = c
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return cost{}, err
	}
	var mean cost
	for _, c := range costs {
		mean.first += c.first / float64(runs)
		mean.later += c.later / float64(runs)
	}
	return mean, nil
}

// A run is what was read of one that goes on.
type run struct {
	pids  []int
	clock func(pid int) (time.Duration, error)

	epochs int
	last   time.Duration // processor time of all processes at the last event
	time   [2]time.Duration
	items  [2]int64 // in the first epoch, and in the others
}

// cost returns what the epochs of a run took that ended with an error, or nil. Too few
// epochs are an error, too.
func (r *run) cost(err error) (cost, error) {
	if err == nil && (r.items[0] == 0 || r.items[1] == 0) {
		err = fmt.Errorf("%d epochs were trained, want two at least", r.epochs)
	}
	if err != nil {
		return cost{}, err
	}
	of := func(i int) float64 { return float64(r.time[i]) / 1e3 / float64(r.items[i]) }
	return cost{of(0), of(1)}, nil
}

func (r *run) event(e *job.Event) error {
	switch {
	case e.Start != nil:
		for _, p := range e.Start.Nodes {
			r.pids = append(r.pids, p.PID)
		}
	case e.Epoch == nil:
		return nil
	}
	var now time.Duration
	for _, pid := range r.pids {
		t, err := r.clock(pid)
		if err != nil {
			return fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		now += t
	}
	if e.Epoch != nil {
		i := min(r.epochs, 1)
		r.epochs++
		r.time[i] += now - r.last
		r.items[i] += e.Epoch.Items
	}
	r.last = now
	return nil
}
