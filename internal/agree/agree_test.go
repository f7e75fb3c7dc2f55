package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/internal/experiment"
	"github.com/godwit-ps/godwit/internal/slownet"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	settings "github.com/godwit-ps/godwit/train/task"
)

func TestTheCommittedCostsCanBeCharged(t *testing.T) {
	b, err := os.ReadFile("costs.json")
	if err != nil {
		t.Fatal(err)
	}
	var c bench.Costs
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil || c.From == "" {
		t.Errorf("%v: %+v", err, c)
	}
}

func TestTheLatencyOfProxiesIsSeen(t *testing.T) {
	n := slownet.New(2, 10*time.Millisecond, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	ways, err := latencies(ctx, n)
	if err != nil || len(ways) == 0 {
		t.Fatalf("%v: %v", ways, err)
	}
	for _, w := range ways {
		if w < 10*time.Millisecond {
			t.Errorf("a way of %v, want 10 ms at least", w)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// The twin of a run feels the network that it is given.
func TestATwinFeelsItsNetwork(t *testing.T) {
	s := settings.DefaultMF()
	s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = 200, 100, 5000
	s.Dim = 4
	spec := job.Default(s)
	spec.Workers, spec.Options.Epochs = 1, 3
	twin, err := experiment.NewTwin(context.Background(), spec, experiment.MeasuredCosts())
	if err != nil {
		t.Fatal(err)
	}
	took := func(latency time.Duration) time.Duration {
		times, frames, err := twin.Epochs(context.Background(), 2, placement.Static, sim.Network{Latency: latency}, twin.Compute())
		if err != nil || len(times) != 3 || frames == 0 {
			t.Fatalf("%v, %d frames: %v", times, frames, err)
		}
		return mean(times[1:])
	}
	// Each step of static waits for a read and a write.
	if near, far := took(10*time.Microsecond), took(10*time.Millisecond); far < near+20*time.Millisecond {
		t.Errorf("an epoch takes %v with 10 µs and %v with 10 ms of latency", near, far)
	}
}

// Nothing is measured then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := (&options{rounds: 1, args: []string{"kge"}}).run(ended)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
