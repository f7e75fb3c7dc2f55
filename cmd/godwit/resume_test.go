package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

func isCheckpoint(e job.Event) bool { return e.Checkpoint != nil && e.Checkpoint.Error == "" }

// result returns the result among the events of a run that ended well.
func result(t *testing.T, stdout string) *job.Result {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var e job.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Result != nil {
			return e.Result
		}
	}
	t.Fatalf("no result in\n%s", stdout)
	return nil
}

func TestAKilledRunIsResumedOnAnyNumberOfNodes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs")
	p := start(t, with("--epochs", "100000", "--eval-every", "1", "--nodes", "2", "--json", "--ttl", ttl, "--checkpoint", dir)...)
	began := p.until("start", isStart)
	p.until("a checkpoint", isCheckpoint)
	p.until("an epoch", isEpoch)
	p.send(syscall.SIGKILL)
	<-p.done
	gone(t, began, limit)
	epochs := 0
	for i, nodes := range []string{"3", "1"} {
		out, code, err := godwit("checkpoint", "ls", dir, "--json")
		if code != 0 {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var last struct {
			Number uint64 `json:"number"`
			Epochs int    `json:"epochs"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		if last.Epochs < max(epochs, 1) {
			t.Errorf("resumed %d times, the last checkpoint is after epoch %d", i, last.Epochs)
		}
		epochs = last.Epochs + 2
		code, stdout, stderr := run(t, "train", "--resume="+dir, "--nodes", nodes, "--epochs", fmt.Sprint(epochs), "--json")
		if code != 0 {
			t.Fatalf("resumed on %s nodes, the exit code is %d:\n%s", nodes, code, stderr)
		}
		if r := result(t, stdout); r.Epochs != epochs || fmt.Sprint(r.Nodes) != nodes {
			t.Errorf("resumed on %s nodes to epoch %d: %+v", nodes, epochs, r)
		}
	}
	if _, code, err := godwit("checkpoint", "verify", dir); code != 0 {
		t.Error(err)
	}
}

// Where there is no place for checkpoints, they are beside the export.
func TestARunWithCheckpointsGoesOnWhenANodeIsLost(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--checkpoint", "--export"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "m")
			place := dir
			if flag == "--export" {
				place = job.Beside(dir)
			}
			goesOn(t, place, flag, dir)
		})
	}
}

func goesOn(t *testing.T, place string, flags ...string) {
	p := start(t, with(append([]string{"--epochs", "100000", "--eval-every", "1", "--nodes", "3", "--json", "--ttl", ttl}, flags...)...)...)
	began := p.until("start", isStart)
	at := p.until("a checkpoint", isCheckpoint).Checkpoint.Epoch
	victim := began.Start.Nodes[1]
	if victim.PID == p.cmd.Process.Pid { // which leads, and need not be the first node
		victim = began.Start.Nodes[2]
	}
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost := p.until("the end of the first", func(e job.Event) bool { return e.Failed != nil }).Failed
	r := p.until("a restart", func(e job.Event) bool { return e.Restart != nil }).Restart
	if r.Nodes != 2 || !strings.HasPrefix(r.From, place+"#") || r.Again < 0 || r.Again > lost.Items {
		t.Errorf("after %+v it goes on as %+v", lost, r)
	}
	again := p.until("another start", isStart)
	if n := len(again.Start.Nodes); n != 2 {
		t.Errorf("it goes on with %d nodes, want 2", n)
	}
	if e := p.until("an epoch", isEpoch); e.Epoch.Epoch <= at {
		t.Errorf("it goes on with epoch %d, and epoch %d was in a checkpoint", e.Epoch.Epoch, at)
	}
	p.send(syscall.SIGTERM)
	p.exits(cli.Interrupted, limit)
	if _, errs := p.said(); !strings.Contains(errs, "restart 1 of at most 3: going on with 2 nodes from "+place) || !strings.Contains(errs, "are trained again") {
		t.Errorf("it says\n%s", errs)
	}
}

// A checkpoint can be asked, evaluated and exported as an export can, and begins another run.
func TestCheckpointsAreModels(t *testing.T) {
	t.Parallel()
	runs, model, again := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "again")
	code, stdout, stderr := run(t, with("--checkpoint", runs, "--export", model, "--json", "--workers", "1")...)
	if code != 0 {
		t.Fatal(stderr)
	}
	want := fmt.Sprint(result(t, stdout).Test)
	if code, _, stderr := run(t, "checkpoint", "export", runs, again); code != 0 {
		t.Fatal(stderr)
	}
	for _, name := range []string{"entities.npy", "entities.txt", "relations.npy", "relations.txt"} {
		a, err1 := os.ReadFile(filepath.Join(model, name))
		b, err2 := os.ReadFile(filepath.Join(again, name))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v, %v", name, err1, err2)
		}
	}
	var outs []string
	for _, place := range []string{model, runs, runs + "#1"} {
		code, out, stderr := run(t, "evaluate", place, "--json")
		if code != 0 {
			t.Fatal(stderr)
		}
		outs = append(outs, out)
	}
	if outs[0] != outs[1] || outs[0] != outs[2] || !strings.Contains(outs[0], "MRR") {
		t.Errorf("evaluated as %q, training said %s", outs, want)
	}
	for flag, says := range map[string]string{"--dim=8": "--dim 8: the run that wrote " + runs + "#1 had 16", "--entities=99": "--entities 99: ", "--seed=9": "--seed 9: "} {
		if code, _, stderr := run(t, "train", "--resume="+runs, flag); code != cli.WrongUsage || !strings.Contains(stderr, says) {
			t.Errorf("resumed with %s, the exit code is %d:\n%s", flag, code, stderr)
		}
	}
	code, stdout, stderr = run(t, with("--init-from", runs, "--epochs", "1", "--json")...)
	if code != 0 {
		t.Fatal(stderr)
	}
	if r := result(t, stdout); r.Untrained.At("MRR") < 0.1 {
		t.Errorf("begun with a trained model, the first figures are %v", r.Untrained)
	}
}

// Other programs write checkpoints, too: those of a library, and those with tasks of their own.
func TestACheckpointOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	dir := ofAnotherProgram(t, "clicks")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, args := range [][]string{{"train", "--resume", dir}, {"evaluate", dir}, {"checkpoint", "export", dir, filepath.Join(t.TempDir(), "model")}} {
		out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.Failure || !strings.Contains(string(out), `"clicks"`) || !strings.Contains(string(out), "the program that wrote it") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
