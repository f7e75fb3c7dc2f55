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
