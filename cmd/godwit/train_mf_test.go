package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/mf"
)

// smallMatrix are the flags of a run of a second or less. All its steps are some
// 20 ms of work, which a busy machine may let a process do at once: evaluations
// have nodes hear of each other once an epoch at least, and by steps as small as
// these the outcome is the same then as if they did all the time.
var smallMatrix = []string{"train", "mf", "--rows", "200", "--columns", "100", "--cells", "8000", "--rank", "2", "--dim", "8", "--batch", "64",
	"--epochs", "12", "--eval-every", "1", "--lr", "0.01", "--l2", "0.05"}

func TestEveryOrderFactorizesAMatrixOnThreeNodes(t *testing.T) {
	t.Parallel()
	for _, order := range mf.Orders() {
		dir := t.TempDir()
		p := start(t, append(append([]string(nil), smallMatrix...), "--nodes", "3", "--workers", "2", "--order", order, "--json", "--export", dir)...)
		r := p.until("the result", isResult).Result
		p.exits(cli.OK, limit)
		if r.Epochs != 12 || !(r.Test.At("RMSE") < 0.6*r.Untrained.At("RMSE")) {
			t.Errorf("%s: %d epochs, RMSE %v, untrained %v", order, r.Epochs, r.Test, r.Untrained)
		}
		if order == mf.Blocks {
			// The first use of a parameter may be one of a copy, and a busy machine may
			// let a process do a whole block with such: one epoch of the twelve at most.
			if n := r.Stats.Accesses(); r.Stats.Local < n*9/10 {
				t.Errorf("blocks: %d of %d accesses are of a main copy at the node", r.Stats.Local, n)
			}
		}
		for _, name := range []string{mf.RowFile, mf.ColumnFile, mf.RowNamesFile, mf.ColumnNamesFile} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s: %v", order, err)
			}
		}
	}
}

func TestBlocksAreInterruptedAtTheEndOfAnEpoch(t *testing.T) {
	t.Parallel()
	p := start(t, append(append([]string(nil), smallMatrix...), "--nodes", "2", "--workers", "2", "--order", "blocks", "--epochs", "100000", "--json")...)
	p.until("an epoch", func(e job.Event) bool { return e.Epoch != nil && e.Epoch.Epoch == 3 })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r := p.until("the result", isResult).Result
	if code := p.wait(limit); code != cli.Interrupted || !r.Interrupted() || r.Epochs < 3 || r.Test.At("RMSE") == 0 {
		t.Errorf("exit code %d, %+v", code, r)
	}
}

// TestMovieLensIsFactorizedOnOneAndFourNodes is the quality that is promised,
// with the defaults.
func TestMovieLensIsFactorizedOnOneAndFourNodes(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("set GODWIT_DATA to a folder with mf/ml-100k to train on real ratings")
	}
	for _, nodes := range []string{"1", "4"} {
		p := start(t, "train", "mf", "--data", filepath.Join(dir, "mf", "ml-100k"), "--split", "u1", "--nodes", nodes, "--json", "--untrained=false")
		r := p.until("the result", isResult).Result
		p.exits(cli.OK, limit)
		if rmse := r.Test.At("RMSE"); !(rmse > 0 && rmse <= 0.95) {
			t.Errorf("%s nodes: the RMSE is %v, want at most 0.95", nodes, rmse)
		}
	}
}

// The rule decides what rate suits, and whether the loss can change it.
func TestARuleOfAMatrixHasDefaultsThatSuitIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags string
		code  int
		says  string
	}{
		{"--rule sgd", cli.OK, `"Rule":"sgd","LR":0.01,"BoldDriver":true,`},
		{"--rule adagrad", cli.OK, `"Rule":"adagrad","LR":0.1,"BoldDriver":false,`},
		{"--rule rowadagrad --lr 0.3", cli.OK, `"Rule":"rowadagrad","LR":0.3,"BoldDriver":false,`},
		{"--rule adam", cli.OK, `"Rule":"adam","LR":0.01,"BoldDriver":false,`},
		{"--rule momentum", cli.OK, `"Rule":"momentum","LR":0.001,"BoldDriver":false,`},
		{"--rule adam --bold-driver", cli.WrongUsage, "--bold-driver true: want false with"},
	} {
		args := append(strings.Fields("train mf --rows 200 --columns 100 --cells 5000 --rank 2 --dim 4 --epochs 1 --json"), strings.Fields(c.flags)...)
		code, out, errs := run(t, args...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("mf %s: exit code %d, want %d, and %s:\n%s%s", c.flags, code, c.code, c.says, out, errs)
		}
	}
}
