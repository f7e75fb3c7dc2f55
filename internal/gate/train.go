package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

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
	cmd := exec.CommandContext(ctx, binary, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		return cost{}, err
	}
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	c, err := read(out, clock)
	if err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM) // its nodes end with it
		_, _ = io.Copy(io.Discard, out)
	}
	if werr := cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", werr, bytes.TrimSpace(said.Bytes())))
	}
	return c, err
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

// read reads the events of a run to their end.
func read(events io.Reader, clock func(pid int) (time.Duration, error)) (cost, error) {
	r := &run{clock: clock}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e job.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return cost{}, fmt.Errorf("%w in the line %.200q", err, lines.Bytes())
		}
		if err := r.event(&e); err != nil {
			return cost{}, err
		}
	}
	if err := lines.Err(); err != nil {
		return cost{}, err
	}
	if r.items[0] == 0 || r.items[1] == 0 {
		return cost{}, fmt.Errorf("%d epochs were trained, want two at least", r.epochs)
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
