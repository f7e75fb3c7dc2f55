package task

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What has an effect follows from the other settings, and from what is found at the path of the data.
func TestSettingsWithoutEffectAreKnown(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one/train.txt", "split/train.txt", "split/test.txt", "u/u1.base", "u/u1.test", "u/u.data", "pair/train.csv", "pair/test.csv",
		"a9a", "a9a.t", "ads/ads_train.txt", "ads/ads_valid.txt", "docword.kos.txt", "text.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kge, mf, linear, lda, w2v, sketch := DefaultKGE(), DefaultMF(), DefaultLinear(), DefaultLDA(), DefaultW2V(), DefaultSketch()
	logistic, named, blocks, factors, adagrad, lines, asked := DefaultKGE(), DefaultMF(), DefaultLinear(), DefaultLinear(), DefaultLinear(), DefaultLDA(), DefaultW2V()
	logistic.Loss, named.Held.Split, blocks.Solver, factors.Factors, adagrad.Rule, lines.Text.Documents, asked.Questions = "logistic", "u1", Blocks, 4, "adagrad", "line", "questions.txt"
	for _, c := range []struct {
		s      Partial
		data   string // in the folder; empty: they are generated
		field  any
		unused bool
	}{
		{kge, "", &kge.Graph, false}, {kge, "one", &kge.Graph, true},
		{kge, "", &kge.Files, true}, {kge, "one", &kge.Files, false},
		{kge, "one", &kge.Files.Split, false}, {kge, "split", &kge.Files.Split, true}, {kge, "split/train.txt", &kge.Files.Split, false}, {kge, "nowhere", &kge.Files.Split, false},
		{kge, "", &kge.Margin, true}, {logistic, "", &logistic.Margin, false},
		{mf, "", &mf.Matrix, false}, {mf, "u", &mf.Matrix, true}, {mf, "", &mf.Held, true},
		{mf, "u", &mf.Held.Test, false}, {named, "u", &named.Held.Test, true}, {mf, "pair", &mf.Held.Test, true},
		{linear, "", &linear.Examples, false}, {linear, "ads", &linear.Examples, true}, {linear, "", &linear.HashBits, true}, {linear, "", &linear.Target, true},
		{linear, "", &linear.Share.Test, false}, {linear, "a9a", &linear.Share.Test, true}, {linear, "a9a", &linear.Share.Valid, false},
		{linear, "ads", &linear.Share.Test, false}, {linear, "ads", &linear.Share.Valid, true},
		{linear, "", &linear.ByBlocks, true}, {blocks, "", &blocks.ByBlocks, false}, {linear, "", &linear.LR, false}, {blocks, "", &blocks.LR, true},
		{linear, "", &linear.FactorLR, true}, {factors, "", &factors.FactorLR, false}, {linear, "", &linear.Beta, false}, {adagrad, "", &adagrad.Beta, true},
		{lda, "", &lda.Documents, false}, {lda, "text.txt", &lda.Documents, true}, {lda, "", &lda.Text, true}, {lda, "", &lda.Held, false},
		{lda, "text.txt", &lda.Text.Length, false}, {lda, "docword.kos.txt", &lda.Text.Length, true}, {lda, "docword.kos.txt", &lda.Text.Skip, false}, {lines, "text.txt", &lines.Text.Length, true},
		{w2v, "", &w2v.Corpus, false}, {w2v, "text.txt", &w2v.Corpus, true}, {w2v, "", &w2v.Format, true}, {asked, "", &asked.Format, false}, {w2v, "", &w2v.MinCount, false},
		{w2v, "", &w2v.Restrict, false}, {w2v, "text.txt", &w2v.Restrict, true}, {asked, "text.txt", &asked.Restrict, false},
		{sketch, "", &sketch.Stream, false}, {sketch, "text.txt", &sketch.Stream, true},
	} {
		data := c.data
		if data != "" {
			data = filepath.Join(dir, data)
		}
		if got := slices.ContainsFunc(c.s.Unused(data), func(u Unused) bool { return slices.Contains(u.Fields, c.field) }); got != c.unused {
			t.Errorf("%s, data %q: the field at %T is unused: %v, want %v", c.s.Name(), c.data, c.field, got, c.unused)
		}
	}
}
