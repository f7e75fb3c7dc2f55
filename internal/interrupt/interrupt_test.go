package main

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
)

// Nothing is run then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&options{nodes: 2, epochs: 3, seeds: 1, args: []string{"kge"}}).run(ended, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}

// Runs that were killed may differ from others as these do among each other, or by a twentieth, and no more.
func TestFiguresThatAreTooFarApartAreAnError(t *testing.T) {
	for _, x := range []struct {
		plain, killed []float64
		ok            bool
	}{
		{[]float64{0.30}, []float64{0.30}, true},
		{[]float64{0.30}, []float64{0.31}, true},
		{[]float64{0.30}, []float64{0.28}, false},
		{[]float64{0.30}, []float64{0.32}, false},
		{[]float64{0.28, 0.32}, []float64{0.32, 0.34}, true},
		{[]float64{0.30}, []float64{math.NaN()}, false},
	} {
		if err := judge(x.plain, x.killed); (err == nil) != x.ok {
			t.Errorf("%v beside %v: %v", x.killed, x.plain, err)
		}
	}
}

// A graph that is generated is trained before the first checkpoint falls due, so runs on it write them of their best epochs.
func TestRunsOnGeneratedDataWriteCheckpointsOfEpochs(t *testing.T) {
	for data, want := range map[string]bool{"": true, "graph": false} {
		b := &bench{options: &options{data: data, nodes: 4, epochs: 6, dim: 64}}
		if args := strings.Join(b.train(1), " "); strings.Contains(args, "--eval-every 1") != want || strings.Contains(args, "--data graph") == want {
			t.Errorf("data %q: %s", data, args)
		}
	}
}
