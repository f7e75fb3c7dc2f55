package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/job/cli"
)

// checkpointed writes three checkpoints into a folder. The last one has what changed since the second.
func checkpointed(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "runs")
	s, err := checkpoint.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	tables := []checkpoint.Table{{Name: "vectors", Rows: 100, Dim: 2, Width: 3, Rule: "adagrad(lr=0.1)", Init: "zero"}}
	var last *checkpoint.Manifest
	for n := range uint64(3) {
		id := checkpoint.NewID(n + 1)
		p, err := checkpoint.Write(t.Context(), s, id, 0, tables, func(w *checkpoint.Writer) error {
			return w.Write(0, []uint64{n, n + 1}, []float32{1, 2, 3, 4, 5, 6})
		})
		if err != nil {
			t.Fatal(err)
		}
		m := checkpoint.Manifest{ID: id, Run: "r", Task: "kge", Program: "devel", Written: time.Unix(1e9, 0), Tables: tables, Epochs: int(n)}
		if n == 2 {
			m.BuildsOn = last.Layers()
		}
		m.Score = &checkpoint.Score{Name: "valid MRR", Value: 1 / float64(n+2)}
		if last, err = checkpoint.Commit(t.Context(), s, m, []*checkpoint.Piece{p}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// godwit runs a command in this process, and returns what it printed and its exit code.
func godwit(args ...string) (out string, code int, err error) {
	cmd := root()
	var b bytes.Buffer
	cmd.SetOut(&b)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return b.String(), cli.ExitCode(err), err
}

func TestCheckpointsAreListedCheckedShownAndPruned(t *testing.T) {
	dir := checkpointed(t)
	for _, c := range []struct {
		args []string
		code int
		want string // in the output, or in the error
	}{
		{[]string{"ls", dir}, 0, "valid MRR 0.3333"},
		{[]string{"ls", dir, "--json"}, 0, `"number":3`},
		{[]string{"ls", dir + "/nothing"}, 1, "there is no checkpoint"},
		{[]string{"ls", "swift://x"}, 1, "no stores of the kind swift://"},
		{[]string{"ls", dir}, 0, "  2     2  0.0  valid MRR 0.2500"},
		{[]string{"verify", dir}, 0, "checkpoint 3 is whole: 3 rows"},
		{[]string{"show", dir}, 0, "those that changed since checkpoint 2; 0.0 MB are read to restore all"},
		{[]string{"verify", dir + "#1", "--json"}, 0, `"rows":2`},
		{[]string{"verify", dir + "#9"}, 1, "checkpoint 9"},
		{[]string{"verify", dir + "#x"}, 1, "no number"},
		{[]string{"show", dir + "#2"}, 0, "vectors: 100 rows of 2 floats, 3 with state, adagrad(lr=0.1)"},
		{[]string{"show", dir + "#2"}, 0, ", 1 node\n"},
		{[]string{"show", dir + "#2", "--json"}, 0, `"index_sha256"`},
		{[]string{"prune", dir, "--keep", "0"}, 2, "--keep 0"},
		{[]string{"prune", dir, "--keep", "1"}, 0, "removed checkpoint 2: 1 object,"},
		{[]string{"verify", dir}, 0, "3 rows"},
		{[]string{"prune", dir, "--keep", "1", "--json"}, 0, `{"checkpoints":null,"objects":0`},
		{[]string{"verify", dir + "#1"}, 0, "whole"},
		{[]string{"ls"}, 2, "arg"},
	} {
		out, code, err := godwit(append([]string{"checkpoint"}, c.args...)...)
		if err != nil {
			out = err.Error()
		}
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("godwit checkpoint %s: exit code %d, %s\nwant %d, %q", strings.Join(c.args, " "), code, out, c.code, c.want)
		}
	}
}

func TestADamagedCheckpointFailsToVerify(t *testing.T) {
	dir := checkpointed(t)
	parts, err := filepath.Glob(filepath.Join(dir, "checkpoint-0000000003.*.rows"))
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	b, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	b[20]++
	if err := os.WriteFile(parts[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, code, err := godwit("checkpoint", "verify", dir)
	if code != cli.Failure || !strings.Contains(err.Error(), filepath.Base(parts[0])) {
		t.Errorf("exit code %d: %v", code, err)
	}
}

// A manifest that was damaged hides no other checkpoint, and nothing is removed while nobody knows what it names.
func TestADamagedManifestIsNamedAndTheOthersAreListed(t *testing.T) {
	dir := checkpointed(t)
	if err := os.WriteFile(filepath.Join(dir, "checkpoint-0000000003.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     []string
		out, err string
	}{
		{[]string{"ls", dir}, "valid MRR 0.3333", "checkpoint 3"},
		{[]string{"ls", dir, "--json"}, `"number":2`, "checkpoint 3"},
		{[]string{"verify", dir}, "", "(one before it may be whole: take #2 of the same place"},
		{[]string{"prune", dir, "--keep", "1"}, "removed no checkpoint", "nothing of checkpoint 3 and those before it was removed"},
		{[]string{"prune", dir, "--json"}, `"unreadable":[3]`, "checkpoint-0000000003.jsonl"},
	} {
		out, code, err := godwit(append([]string{"checkpoint"}, c.args...)...)
		if code != cli.Failure || !strings.Contains(out, c.out) || !strings.Contains(err.Error(), c.err) {
			t.Errorf("godwit checkpoint %s: exit code %d, %v, %s\nwant 1, %q, %q", strings.Join(c.args, " "), code, err, out, c.err, c.out)
		}
	}
	if _, code, err := godwit("checkpoint", "verify", dir+"#2"); code != 0 {
		t.Errorf("the checkpoint before it: %v", err)
	}
}

func TestPruneIsRefusedWhileARunWrites(t *testing.T) {
	dir := checkpointed(t)
	s, err := checkpoint.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := checkpoint.Acquire(t.Context(), s, checkpoint.Holder{Run: "busy", Host: "h", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, code, err := godwit("checkpoint", "prune", dir)
	if code != cli.Lost || !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("exit code %d: %v", code, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if _, code, err := godwit("checkpoint", "prune", dir); code != 0 {
		t.Error(err)
	}
}

// Nor does a folder that has none of a run change, be it named or be it the one in which a script whose variable is not set was begun.
func TestPruneLeavesNoLockInAFolderOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "locks.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if out, code, err := godwit("checkpoint", "prune", dir); code != 1 || !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("exit code %d, %q, %v", code, out, err)
	}
	for _, c := range []string{"ls", "verify", "prune"} {
		if out, code, err := godwit("checkpoint", c, ""); code != 1 || err == nil || !strings.Contains(err.Error(), "the place is empty") {
			t.Errorf("%s of no place: exit code %d, %q, %v", c, code, out, err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
}

// A place where there is nothing is a mistake of whoever named it, and stays as it is.
func TestPruneMakesNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "typo")
	if out, code, err := godwit("checkpoint", "prune", dir); code != 1 || !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("exit code %d, %q, %v", code, out, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder above it: %v", err)
	}
}

// ofAnotherProgram writes a checkpoint into a folder, as a library does, or a program with a task of its own.
func ofAnotherProgram(t *testing.T, task string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "runs")
	s, err := checkpoint.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := checkpoint.Manifest{ID: checkpoint.NewID(1), Run: "r", Task: task, Tables: []checkpoint.Table{{Name: "t", Rows: 10, Dim: 1, Width: 1, Rule: "add", Init: "zero"}}}
	p, err := checkpoint.Write(t.Context(), s, m.ID, 0, m.Tables, func(w *checkpoint.Writer) error { return w.Write(0, []uint64{3}, []float32{1}) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Commit(t.Context(), s, m, []*checkpoint.Piece{p}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The library for other languages says no version in a checkpoint.
func TestACheckpointOfNoNamedProgramIsShownWithout(t *testing.T) {
	dir := ofAnotherProgram(t, "library")
	if out, code, err := godwit("checkpoint", "show", dir); code != 0 || strings.Contains(out, "by godwit") {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
}
