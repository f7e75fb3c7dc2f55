package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/experiment"
)

// read returns the header of a file of figures by key, and its lines.
func read(t *testing.T, name string) (header map[string]string, lines [][]string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	header = map[string]string{}
	for line := range strings.Lines(string(b)) {
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
			header[key] = value
		}
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comment = '#'
	if lines, err = r.ReadAll(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return header, lines
}

func TestFiguresSayWhereTheyComeFrom(t *testing.T) {
	if testing.Short() {
		t.Skip("builds godwit")
	}
	if _, err := commit(context.Background()); err != nil {
		t.Skip(err)
	}
	all := results
	defer func() { results = all }()
	results = []result{
		measured("early", "experiment timing --step 50us", "timing-replicas=replicas", "timing-wait"),
		measured("access", "bench local/pull/10"),
	}
	dir := t.TempDir()
	o := options{out: dir, plots: dir, quick: true}
	if err := o.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{"early": "godwit experiment timing --step 50us --quick", "access": "godwit bench --time 100ms --rows 10000 local/pull/10"} {
		header, lines := read(t, filepath.Join(dir, name+".csv"))
		if header["command"] != command || len(header["commit"]) < 12 || header["machine"] == "" || header["date"] == "" || header["what"] == "" {
			t.Errorf("%s: header %v, want the command %q, the commit, the machine, the date and what ran", name, header, command)
		}
		if len(lines) < 3 {
			t.Errorf("%s: lines %v, want names and figures", name, lines)
		}
	}
	for _, plot := range []string{"replicas.svg", "timing-wait.svg"} {
		if _, err := os.Stat(filepath.Join(dir, plot)); err != nil {
			t.Error(err)
		}
	}
}

// What fails leaves the figures of before.
func TestFailuresReplaceNothing(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := measurement{result: measured("x", "bench"), binary: filepath.Join(dir, "no such program"), dir: dir}
	if err := m.run(context.Background(), dir, dir); err == nil {
		t.Error("ran a program that is not there")
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "old" {
		t.Errorf("%q, %v; want what was there", b, err)
	}
}

func TestQuickFiguresStayOutOfTheDocuments(t *testing.T) {
	o := options{match: "nothing", out: filepath.Join("docs", "results"), plots: t.TempDir(), quick: true}
	if err := o.run(context.Background()); err == nil || !strings.Contains(err.Error(), "-out") {
		t.Errorf("%v, want figures of -quick to be refused in docs/results", err)
	}
}

func TestExperimentsAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, name := range experiment.Names() {
		known[name] = true
	}
	for _, r := range results {
		if r.args[0] == "experiment" && !known[r.args[1]] {
			t.Errorf("%s runs no experiment: %q", r.name, r.args[1])
		}
	}
}

// The figures in the documents can be read, and say how old they are.
func TestDocumentsHaveTheirFigures(t *testing.T) {
	for _, r := range results {
		header, lines := read(t, filepath.Join("..", "..", "docs", "results", r.name+".csv"))
		if header["command"] == "" || header["commit"] == "" || header["machine"] == "" || len(lines) < 2 {
			t.Errorf("%s: header %v and %d lines, want the command, the commit, the machine and figures", r.name, header, len(lines))
		}
	}
}

// Nothing is measured then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&options{match: "bench", quick: true, out: t.TempDir(), args: []string{"kge"}}).run(ended)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
