package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

// asked runs a command within this process that reads questions from stdin.
func asked(t *testing.T, stdin string, args ...string) (code int, stdout, failure string) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader(stdin))
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		failure = err.Error()
	}
	return cli.ExitCode(err), out.String(), failure
}

// A user trains on a graph of their own, evaluates the export and asks it.
func TestAGraphIsTrainedEvaluatedAndAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	graph, model := filepath.Join(dir, "graph"), filepath.Join(dir, "model")
	if err := os.Mkdir(graph, 0o777); err != nil {
		t.Fatal(err)
	}
	var facts strings.Builder
	for i := range 60 {
		fmt.Fprintf(&facts, "town %d\tlies in\tland %d\nland %d\thas\ttown %d\n", i, i%5, i%5, i)
	}
	for _, name := range []string{"train", "valid", "test"} {
		text := facts.String()
		if name != "train" {
			text = "town 7\tlies in\tland 2\n"
		}
		if err := os.WriteFile(filepath.Join(graph, name+".txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, "train", "kge", "--data", graph, "--dim", "16", "--epochs", "40", "--batch", "16", "--untrained=false", "--json", "--export", model)
	p.until("start", isStart)
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)

	code, out, errs := asked(t, "", "evaluate", model, "--json")
	var ev struct {
		Task string      `json:"task"`
		Test job.Metrics `json:"test"`
	}
	if err := json.Unmarshal([]byte(out), &ev); code != 0 || err != nil || ev.Task != "kge" || !alike(ev.Test, r.Test) {
		t.Errorf("evaluate exits with %d, %v: %s%s; training had %v", code, err, out, errs, r.Test)
	}
	code, out, errs = asked(t, "", "evaluate", model, filepath.Join(graph, "train.txt"))
	if code != 0 || !strings.Contains(out, "Hits@10") {
		t.Errorf("evaluate on a file exits with %d: %s%s", code, out, errs)
	}

	question := "town 7\tlies in\t?\nland 3\thas\ttown 8\nAtlantis\thas\t?\n"
	code, out, errs = asked(t, question, "predict", model, "--top", "1")
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[0], "town 7\tlies in\tland 2\t") || !strings.HasPrefix(lines[1], "land 3\thas\ttown 8\t") || lines[2] != "?\t\"Atlantis\" is none of the model's entities" {
		t.Errorf("predict exits with %d:\n%s%s", code, out, errs)
	}
	code, out, errs = asked(t, question, "predict", model, "-", "--top", "1", "--known", graph, "--json")
	var first struct {
		Line   int `json:"line"`
		Answer struct {
			Completions []struct {
				Head, Relation, Tail string
				Score                float64
			} `json:"completions"`
		} `json:"answer"`
	}
	if err := json.Unmarshal([]byte(strings.Split(out, "\n")[0]), &first); code != 0 || err != nil || first.Line != 1 || first.Answer.Completions[0].Tail == "land 2" {
		t.Errorf("predict exits with %d, %v, want another tail than the known one:\n%s%s", code, err, out, errs)
	}
}

func TestTrainingGoesOnFromAnExportOnProcesses(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "model")
	p := start(t, with("--json", "--export", model)...)
	want := p.until("the result", isResult).Result.Test
	p.exits(cli.OK, limit)
	p = start(t, with("--json", "--nodes", "2", "--epochs", "1", "--init-from", model)...)
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	if !alike(r.Untrained, want) {
		t.Errorf("before training the figures are %v, the model had %v", r.Untrained, want)
	}
	code, _, errs := asked(t, "", "train", "mf", "--init-from", model)
	if code != cli.Failure || !strings.Contains(errs, "is of the task kge, not of mf") {
		t.Errorf("a model of another task: exit code %d, %s", code, errs)
	}
}

func TestWrongQuestionsAndModelsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	p := start(t, "train", "mf", "--rows", "20", "--columns", "15", "--cells", "150", "--epochs", "2", "--dim", "4", "--json", "--export", model)
	p.until("the result", isResult)
	p.exits(cli.OK, limit)
	file := filepath.Join(dir, "cells.tsv")
	if err := os.WriteFile(file, []byte("1\t2\t0.5\n3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"predict"}, cli.WrongUsage, "arg"},
		{[]string{"predict", model, "--top", "0"}, cli.WrongUsage, "--top 0"},
		{[]string{"predict", model, "--known", dir}, cli.WrongUsage, "--known"},
		{[]string{"predict", dir}, cli.Failure, "model.json"},
		{[]string{"predict", model, filepath.Join(dir, "none")}, cli.Failure, "no such file"},
		{[]string{"predict", model, file}, cli.Failure, "cells.tsv:2: 1 fields, want row and column"},
		{[]string{"evaluate", model, file}, cli.Failure, "cells.tsv:2: 1 fields"},
		{[]string{"evaluate", model, file, "--data", file}, cli.WrongUsage, "--data"},
		{[]string{"evaluate", model, "--known", file}, cli.WrongUsage, "--known"},
		{[]string{"evaluate", model, "--data", file}, cli.Failure, "cells.tsv:2: 1 fields"},
	} {
		code, out, errs := asked(t, "", c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, want %d and to hear of %q:\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}

// alike reports whether figures agree but for the order in which they were added up.
func alike(a, b job.Metrics) bool {
	for i := range a {
		if len(a) != len(b) || a[i].Name != b[i].Name || math.Abs(a[i].Value-b[i].Value) > 1e-6 {
			return false
		}
	}
	return len(a) > 0
}
