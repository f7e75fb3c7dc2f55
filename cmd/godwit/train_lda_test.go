package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/lda"
)

func TestTopicsAreFoundOnThreeNodesWithExactCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "train", "lda", "--documents", "600", "--words", "300", "--planted", "8", "--topics", "8", "--epochs", "20", "--eval-every", "5",
		"--nodes", "3", "--workers", "2", "--json", "--export", dir)
	for range 4 {
		e := p.until("an evaluation", func(e job.Event) bool { return e.Evaluation != nil && e.Evaluation.Epoch > 0 })
		if len(e.Evaluation.Warnings) > 0 {
			t.Errorf("after epoch %d: %q", e.Evaluation.Epoch, e.Evaluation.Warnings)
		}
	}
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	if before, after := r.Untrained.At("perplexity"), r.Test.At("perplexity"); !(after < before/2) {
		t.Errorf("the perplexity went from %v to %v", before, after)
	}
	text, err := os.ReadFile(filepath.Join(dir, lda.TopicFile))
	if err != nil || strings.Count(string(text), "\n") != 8 {
		t.Errorf("topics %q, %v", text, err)
	}
}

func TestAStreamIsCountedOnThreeNodesAndNeverTooLow(t *testing.T) {
	t.Parallel()
	p := start(t, "train", "sketch", "--items", "50000", "--distinct", "5000", "--width", "1000", "--nodes", "3", "--workers", "2", "--json")
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	if small, within := r.Test.At("too small"), r.Test.At("within bound"); small != 0 || within < 0.98 {
		t.Errorf("%v estimates are too small, %v are within the bound", small, within)
	}
}

// Small texts and documents of users are trained, and new ones asked.
func TestSmallTextsAndDocumentsAreTrained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var docs strings.Builder
	for i := range 60 {
		docs.WriteString([]string{"cat dog bird fish\n", "car bus train plane\n"}[i%2])
	}
	path := filepath.Join(dir, "docs.txt")
	if err := os.WriteFile(path, []byte(docs.String()+"caf\xe9\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	topics := filepath.Join(dir, "topics")
	p := start(t, "train", "lda", "--data", path, "--document", "line", "--min-count", "2", "--skip", "0", "--topics", "2", "--export", topics, "--json")
	if w := p.until("the start", isStart).Start.Warnings; len(w) != 1 || !strings.Contains(w[0], "1 byte of the text is not valid UTF-8") {
		t.Errorf("warnings: %q", w)
	}
	p.until("the result", isResult)
	p.exits(cli.OK, limit)
	code, out, errs := asked(t, "dog cat cat bird\nbus car\n", "predict", topics, "--top", "1")
	if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 3 || lines[0][0] == lines[1][0] {
		t.Errorf("predict exits with %d: %s%s, want two topics", code, out, errs)
	}

	p = start(t, "train", "w2v", "--data", path, "--min-count", "1", "--dim", "4", "--subsample", "0", "--json")
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	if len(r.Test) != 1 || !(r.Test.At("held-out loss") > 0) {
		t.Errorf("a text of 241 words has the figures %v, want a held-out loss", r.Test)
	}
}
