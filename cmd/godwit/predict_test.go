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
	var ev linksEvaluated
	if err := json.Unmarshal([]byte(out), &ev); code != 0 || err != nil || ev.Task != "kge" || !alike(ev.Test, r.Test) || ev.ByRelation != nil {
		t.Errorf("evaluate exits with %d, %v: %s%s; training had %v", code, err, out, errs, r.Test)
	}
	if got := between(ev.ByDirection.Head, ev.ByDirection.Tail); !alike(got, r.Test) {
		t.Errorf("evaluate prints %s: the means of directions are %v, training had %v", out, got, r.Test)
	}
	code, out, errs = asked(t, "", "evaluate", model, filepath.Join(graph, "train.txt"))
	if code != 0 || !strings.Contains(out, "Hits@10") || strings.Contains(out, "lies in") {
		t.Errorf("evaluate on a file exits with %d: %s%s", code, out, errs)
	}
	more := filepath.Join(dir, "more.txt")
	if err := os.WriteFile(more, []byte("town 7\tlies in\tland 2\nland 2\thas\ttown 7\nland 3\thas\ttown 8\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, errs = asked(t, "", "evaluate", model, more, "--known", graph, "--by", "relation")
	tables := strings.Split(out, "\n\n")
	if code != 0 || len(tables) != 2 || !words(tables[0], 0, "predicted MRR Hits@1 Hits@3 Hits@10") || !words(tables[0], 1, "both ") || !words(tables[0], 2, "head ") || !words(tables[0], 3, "tail ") ||
		!words(tables[1], 0, "facts head MRR tail MRR head Hits@10 tail Hits@10 relation") || !words(tables[1], 1, "2 ") || !words(tables[1], 2, "1 ") ||
		!strings.Contains(tables[1], " has\n") || !strings.Contains(tables[1], " lies in\n") {
		t.Errorf("evaluate by relation exits with %d:\n%s%s", code, out, errs)
	}
	code, out, errs = asked(t, "", "evaluate", model, more, "--known", graph, "--by", "relation", "--json")
	ev = linksEvaluated{}
	if err := json.Unmarshal([]byte(out), &ev); code != 0 || err != nil || len(ev.ByRelation) != 2 || ev.ByRelation[0].Relation != "has" || ev.ByRelation[0].Facts != 2 || ev.ByRelation[1].Relation != "lies in" || ev.ByRelation[1].Facts != 1 {
		t.Fatalf("evaluate by relation exits with %d, %v:\n%s%s", code, err, out, errs)
	}
	// Two facts of the one and one of the other make up all.
	a, b := ev.ByRelation[0], ev.ByRelation[1]
	for what, x := range map[string][3]job.Metrics{
		"heads": {a.Head, b.Head, ev.ByDirection.Head}, "tails": {a.Tail, b.Tail, ev.ByDirection.Tail},
		"all": {between(a.Head, a.Tail), between(b.Head, b.Tail), ev.Test},
	} {
		for i := range 4 {
			if got := (2*x[0][i].Value + x[1][i].Value) / 3; math.Abs(got-x[2][i].Value) > 1e-9 {
				t.Errorf("%s: relations have %v and %v, which do not make up %v", what, x[0], x[1], x[2])
			}
		}
	}

	// Of equally many facts, the relation whose name is the first.
	if err := os.WriteFile(more, []byte("town 7\tlies in\tland 2\nland 2\thas\ttown 7\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, errs = asked(t, "", "evaluate", model, more, "--by", "relation")
	if has, lies := strings.Index(out, " has\n"), strings.Index(out, " lies in\n"); code != 0 || has < 0 || lies < has {
		t.Errorf("evaluate by relation exits with %d:\n%s%s", code, out, errs)
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
		{[]string{"predict", model, file}, cli.Failure, "cells.tsv:2: 1 field, want row and column"},
		{[]string{"evaluate", model, file}, cli.Failure, "cells.tsv:2: 1 field"},
		{[]string{"evaluate", model, file, "--data", file}, cli.WrongUsage, "--data"},
		{[]string{"evaluate", model, "--known", file}, cli.WrongUsage, "--known"},
		{[]string{"evaluate", model, "--by", "relation"}, cli.WrongUsage, "--by relation is for models of the task kge, and this one is of mf"},
		{[]string{"evaluate", model, "--by", "entity"}, cli.WrongUsage, `--by "entity": want relation`},
		{[]string{"evaluate", model, "--data", file}, cli.Failure, "cells.tsv:2: 1 field"},
	} {
		code, out, errs := asked(t, "", c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, want %d and to hear of %q:\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}

// linksEvaluated is what "godwit evaluate --json" prints of a graph.
type linksEvaluated struct {
	Task        string
	Test        job.Metrics
	ByDirection struct{ Head, Tail job.Metrics } `json:"by_direction"`
	ByRelation  []struct {
		Relation   string
		Facts      int
		Head, Tail job.Metrics
	} `json:"by_relation"`
}

// between are the means of figures.
func between(a, b job.Metrics) job.Metrics {
	var ms job.Metrics
	for i := range min(len(a), len(b)) {
		m := a[i]
		m.Value = (m.Value + b[i].Value) / 2
		ms = append(ms, m)
	}
	return ms
}

// words reports whether a line of a text begins with words, which single spaces separate.
func words(text string, line int, want string) bool {
	lines := strings.Split(text, "\n")
	return line < len(lines) && strings.HasPrefix(strings.Join(strings.Fields(lines[line]), " "), want)
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
