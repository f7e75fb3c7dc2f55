//go:build !race

package kge

// Training to the end takes the race detector minutes, and shows it nothing
// that the short runs of the other tests do not.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
)

// quality trains on two workers and ranks the test triples.
func quality(t *testing.T, c Config, g *triples.Graph, epochs int) Quality {
	t.Helper()
	task, s := setup(t, c, g, 1, 2)
	env := train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { t.Log(e) }}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	q, err := task.Rank(t.Context(), &env, "test", g.Test)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s on %d entities: %v", c.Model, len(g.Entities), q)
	return q
}

// smallGraph is a generated graph that trains in about a second.
func smallGraph(t *testing.T) *triples.Graph {
	t.Helper()
	s := triples.DefaultSpec()
	s.Entities, s.Relations, s.Triples = 500, 10, 15_000
	g, err := triples.Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryModelLearnsAGeneratedGraph(t *testing.T) {
	g := smallGraph(t)
	for _, x := range []struct {
		model string
		dim   int
		least float64
	}{
		{"complex", 64, 0.5}, {"distmult", 64, 0.3}, {"rescal", 16, 0.3}, {"transe", 64, 0.2}, {"rotate", 64, 0.3},
	} {
		t.Run(x.model, func(t *testing.T) {
			c := DefaultConfig()
			c.Model, c.Dim = x.model, x.dim
			q := quality(t, c, g, 10)
			if q.MRR < x.least {
				t.Errorf("MRR %.3f, want at least %v", q.MRR, x.least)
			}
		})
	}
}

func TestDotProductsLearnByRulesOfSmallSteps(t *testing.T) {
	g := smallGraph(t)
	for _, rule := range []string{"ftrl", "sgd"} {
		t.Run(rule, func(t *testing.T) {
			c := DefaultConfig()
			c.Rule, c.Dim, c.Batch = rule, 32, 128
			if rule != "ftrl" {
				c.N3 = 0
			}
			q := quality(t, c, g, 4)
			if q.MRR < 0.1 {
				t.Errorf("MRR %.3f, want at least 0.1, untrained it is 0.01", q.MRR)
			}
		})
	}
}

func TestTheLogisticLossLearnsToo(t *testing.T) {
	c := DefaultConfig()
	c.Loss, c.Dim = Logistic, 64
	if q := quality(t, c, smallGraph(t), 10); q.MRR < 0.3 {
		t.Errorf("MRR %.3f, want at least 0.3", q.MRR)
	}
}

func TestSelfAdversarialNegativesLearnAndChangeTraining(t *testing.T) {
	g := smallGraph(t)
	run := func(alpha float32) Quality {
		c := DefaultConfig()
		c.Model, c.Dim, c.Loss, c.Margin, c.Adversarial = "rotate", 64, Logistic, 3, alpha
		return quality(t, c, g, 10)
	}
	with, without := run(2), run(0)
	if with.MRR < 0.3 || with.MRR < without.MRR+0.05 {
		t.Errorf("MRR %.3f, and %.3f where all negatives weigh alike: want at least 0.3, and 0.05 more", with.MRR, without.MRR)
	}
}

// realGraph loads a graph of the data folder, or skips the test.
func realGraph(t *testing.T, name string) *triples.Graph {
	t.Helper()
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with kge/" + name)
	}
	g, err := triples.Load(filepath.Join(dir, "kge", name), triples.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDefaultsDoWellOnTinyRealGraphs(t *testing.T) {
	for _, x := range []struct {
		name  string
		least float64
	}{{"umls", 0.80}, {"kinship", 0.75}} {
		t.Run(x.name, func(t *testing.T) {
			if q := quality(t, DefaultConfig(), realGraph(t, x.name), 15); q.MRR < x.least {
				t.Errorf("MRR %.3f, want at least %v", q.MRR, x.least)
			}
		})
	}
}

// The full run of the defaults, 20 to 30 epochs, takes minutes; what a few
// epochs reach tells already whether something broke.
func TestDefaultsDoWellOnFB15k237WithinFiveEpochs(t *testing.T) {
	g := realGraph(t, "fb15k-237")
	if testing.Short() {
		t.Skip("takes a minute")
	}
	if q := quality(t, DefaultConfig(), g, 5); q.MRR < 0.30 || q.Hits10 < 0.45 {
		t.Errorf("%v, want MRR of at least 0.30 and Hits@10 of at least 0.45", q)
	}
}
