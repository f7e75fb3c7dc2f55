package main

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/linear"
)

// fewExamples are the flags of a run of a second or less.
var fewExamples = []string{"train", "linear", "--examples", "4000", "--features", "500", "--relevant", "40", "--epochs", "5"}

func examples(args ...string) []string { return append(append([]string(nil), fewExamples...), args...) }

// TestBothSolversAndFactorsTrainOnThreeNodes holds however late nodes see each
// other's steps: an epoch is nine steps of each worker, which a busy machine may
// let a process do at once. The pairs of factors amplify what workers overshoot
// together then, so they train with small steps: their AUC is 0.87 or more even
// if nodes hear of each other at the end only.
func TestBothSolversAndFactorsTrainOnThreeNodes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--solver", "stochastic"}, {"--solver", "blocks"}, {"--factors", "4", "--lr", "0.01", "--factor-lr", "0.01"},
	} {
		dir := t.TempDir()
		p := start(t, examples(append(args, "--nodes", "3", "--workers", "2", "--json", "--export", dir)...)...)
		r := p.until("the result", isResult).Result
		p.exits(cli.OK, limit)
		if auc := r.Test.At("AUC"); r.Epochs != 5 || auc < 0.85 || r.Untrained.At("AUC") != 0.5 && args[0] != "--factors" {
			t.Errorf("%v: %d epochs, AUC %v, untrained %v", args, r.Epochs, auc, r.Untrained)
		}
		for _, name := range []string{linear.WeightFile, linear.BiasFile} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}

func TestBlocksOfFeaturesAreInterruptedAtTheEndOfAnEpoch(t *testing.T) {
	t.Parallel()
	p := start(t, examples("--nodes", "2", "--workers", "2", "--solver", "blocks", "--epochs", "100000", "--json")...)
	p.until("an epoch", func(e job.Event) bool { return e.Epoch != nil && e.Epoch.Epoch == 3 })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r := p.until("the result", isResult).Result
	if code := p.wait(limit); code != cli.Interrupted || !r.Interrupted() || r.Epochs < 3 || r.Test.At("AUC") < 0.8 {
		t.Errorf("exit code %d, %+v", code, r)
	}
}

// TestA9aIsLearnedOnOneAndFourNodes is the quality that is promised, with the
// defaults but for the passes.
func TestA9aIsLearnedOnOneAndFourNodes(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("set GODWIT_DATA to a folder with linear/a9a to train on real examples")
	}
	for _, solver := range []string{"stochastic", "blocks"} {
		var loss []float64
		for _, nodes := range []string{"1", "4"} {
			p := start(t, "train", "linear", "--data", filepath.Join(dir, "linear", "a9a", "a9a.gz"), "--solver", solver, "--epochs", "20", "--nodes", nodes, "--json", "--untrained=false")
			r := p.until("the result", isResult).Result
			p.exits(cli.OK, limit)
			if acc := r.Test.At("accuracy"); !(acc >= 0.845) {
				t.Errorf("%s on %s nodes: the accuracy is %v, want at least 0.845", solver, nodes, acc)
			}
			loss = append(loss, r.Test.At("log loss"))
		}
		tolerance := 2e-3 // of asynchronous workers
		if solver == "blocks" {
			tolerance = 1e-4
		}
		if d := math.Abs(loss[0] - loss[1]); d > tolerance {
			t.Errorf("%s: log loss %v on one node, %v on four", solver, loss[0], loss[1])
		}
	}
}
