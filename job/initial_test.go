package job

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train/task"
)

// A run that begins with a model has its figures before training, on several nodes too.
func TestTrainingBeginsWithATrainedModel(t *testing.T) {
	for name, spec := range reusable() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, want := trained(t, spec)
			again := spec
			again.InitFrom, again.Untrained, again.Options.Epochs, again.Nodes, again.Workers = dir, true, 1, 2, 1
			var a album
			r, err := Local(timeout(t), "again", again, NodeConfig{Progress: a.keep})
			if err != nil {
				t.Fatal(err)
			}
			start := a.events[slices.IndexFunc(a.events, func(e Event) bool { return e.Start != nil })].Start
			if len(start.Warnings) > 0 {
				t.Errorf("warnings: %q", start.Warnings)
			}
			for _, e := range a.events {
				if e.Evaluation != nil && len(e.Evaluation.Warnings) > 0 {
					t.Errorf("warnings after epoch %d: %q", e.Evaluation.Epoch, e.Evaluation.Warnings)
				}
			}
			switch spec.Task.(type) {
			case *task.Sketch: // it counts the stream once more
				if r.Test.At("too small") != 0 || r.Untrained.At("too small") != 0 {
					t.Errorf("counts are too small: %v, then %v", r.Untrained, r.Test)
				}
			case *task.W2V: // of the untrained model, a part of the questions is asked
				if got := r.Untrained.At("analogies"); got < want.At("analogies")-0.1 || got == 0 {
					t.Errorf("before training %v, the model had %v", r.Untrained, want)
				}
			default:
				agree(t, "before training", r.Untrained, want)
			}
		})
	}
}

// Names are found whatever their numbers are, and what is new begins untrained.
func TestWhatIsNewBeginsUntrained(t *testing.T) {
	spec := reusable()["complex"]
	g, err := triples.Generate(spec.Task.(*task.KGE).Graph)
	if err != nil {
		t.Fatal(err)
	}
	load := func(g triples.Graph) string {
		dir := t.TempDir()
		if err := g.Write(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	spec.Data = load(*g)
	dir, _, want := trained(t, spec)

	// The same facts in another order, which numbers the names anew, and one of others.
	other := *g
	other.Train = slices.Clone(g.Train)
	slices.Reverse(other.Train)
	other.Entities = append(slices.Clone(g.Entities), "new", "newer")
	n := uint32(len(g.Entities))
	other.Train = append(other.Train, triples.Triple{S: n, R: 0, O: n + 1})
	spec.Data, spec.InitFrom, spec.Untrained, spec.Options.Epochs = load(other), dir, true, 1
	var a album
	r, err := Local(timeout(t), "again", spec, NodeConfig{Progress: a.keep})
	if err != nil {
		t.Fatal(err)
	}
	start := a.events[slices.IndexFunc(a.events, func(e Event) bool { return e.Start != nil })].Start
	if len(start.Warnings) != 1 || !strings.Contains(start.Warnings[0], `2 of 152 rows of the table "entity"`) {
		t.Errorf("warnings: %q", start.Warnings)
	}
	if got := r.Untrained.At("MRR"); got < want.At("MRR")-0.05 {
		t.Errorf("the MRR before training is %v, the model had %v", got, want)
	}
}

func TestAModelThatDoesNotFitIsRefused(t *testing.T) {
	specs := reusable()
	for _, c := range []struct{ of, into, want string }{
		{"complex", "lda", "is of the task kge, not of lda"},
		{"complex", "rescal", `its model is "complex", and "rescal" is wanted`},
		{"weights", "factors", "and \"factorization machine\" is wanted"},
		{"weights", "no bias", "bias is true of it, and false is wanted"},
		{"mf, biased true", "mf, biased false", "biased is true of it, and false is wanted"},
	} {
		dir, _, _ := trained(t, specs[c.of])
		spec := specs[c.into]
		spec.InitFrom = dir
		if _, err := Local(timeout(t), "test", spec, NodeConfig{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s into %s: %v, want to hear of %q", c.of, c.into, err, c.want)
		}
	}
	for name, change := range map[string]func(s *Spec){
		"its dim is 8, and 16 is wanted":                  func(s *Spec) { s.Task.(*task.KGE).Dim = 16 },
		"reciprocal is false of its relations":            func(s *Spec) { s.Task.(*task.KGE).Reciprocal = true },
		"is no folder of an export: it has no model.json": func(s *Spec) { s.InitFrom = filepath.Dir(s.InitFrom) },
	} {
		dir, _, _ := trained(t, specs["complex"])
		spec := reusable()["complex"]
		spec.InitFrom = dir
		change(&spec)
		if _, err := Local(timeout(t), "test", spec, NodeConfig{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("it says %v, want to hear of %q", err, name)
		}
	}
	dir, _, _ := trained(t, specs["sketch"])
	for want, change := range map[string]func(s *Spec){
		"its seed is 3, and 4 is wanted":                   func(s *Spec) { s.Seed = 4 },
		"it has 8192 cells, and 4 rows of 1024 are wanted": func(s *Spec) { s.Task.(*task.Sketch).Width = 1024 },
	} {
		spec := reusable()["sketch"]
		spec.InitFrom = dir
		change(&spec)
		if _, err := Local(timeout(t), "test", spec, NodeConfig{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want to hear of %q", err, want)
		}
	}
}
