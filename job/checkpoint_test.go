package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// digests returns the digests of all checkpoints of a folder, by epoch.
func digests(t *testing.T, dir string) map[int]checkpoint.Digest {
	t.Helper()
	found := map[int]checkpoint.Digest{}
	for _, m := range manifests(t, dir) {
		c, err := checkpoint.OpenPlace(t.Context(), numberedPlace(dir, m.Number))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := c.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found[m.Epochs] = sum.Digest
	}
	return found
}

// manifests returns those of all checkpoints of a folder.
func manifests(t *testing.T, dir string) []*checkpoint.Manifest {
	t.Helper()
	s, err := checkpoint.OpenStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := checkpoint.Manifests(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// local runs a spec in this process, with checkpoints in a folder.
func local(t *testing.T, spec Spec, dir string, cfg NodeConfig) *Result {
	t.Helper()
	spec.Checkpoint, spec.Keep = dir, 100
	r, err := Local(t.Context(), "r", spec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The rows do not change when a run is resumed on another number of nodes, and not trained.
func TestTheDigestDoesNotDependOnTheNumberOfNodes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(2)
	spec.Workers = 2
	local(t, spec, dir, NodeConfig{})
	from := dir
	want := digests(t, dir)[spec.Options.Epochs]
	for i, nodes := range []int{1, 4, 3} {
		s, err := Resumed(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		s.Nodes, s.Policy = nodes, "static"
		to := filepath.Join(t.TempDir(), fmt.Sprint(i))
		local(t, s, to, NodeConfig{}) // writes what it found to the new place
		if after := digests(t, to); after[spec.Options.Epochs] != want {
			t.Fatalf("on %d nodes the digest is %v, want %v", nodes, after, want)
		}
		from = to
	}
}

// A rate that was left to what suits is that of the checkpoint, whatever suits in this program. Of what the checkpoint does not tell, a warning says so.
func TestARunGoesOnWithTheRateThatItHad(t *testing.T) {
	adam, sgd, scheduled := task.DefaultKGE(), task.DefaultMF(), task.DefaultKGE()
	adam.Rule, scheduled.LRSchedule = "adam", "linear"
	adagrad, words := task.DefaultMF(), task.DefaultW2V()
	adagrad.Rule, adagrad.BoldDriver = "adagrad", false
	const rule = "adam(lr=0.125,b1=0.9,b2=0.999,eps=1e-08)"
	for _, x := range []struct {
		settings task.Settings
		table    string
		lr       *float32
		given    float32
		rule     string
		want     float32
		warnings string
	}{
		{adam, "entity", &adam.LR, 0, rule, 0.125, "left InitStd to"},
		{adam, "entity", &adam.LR, 0.5, rule, 0.5, "left InitStd to"},
		{scheduled, "entity", &scheduled.LR, 0, "ratedadagrad", 0, "left LR and InitStd to"},
		{sgd, "row", &sgd.LR, 0, "add", 0, "left LR to"},
		{adagrad, "row", &adagrad.LR, 0, "adagrad(lr=0.125)", 0.125, ""},
		{words, "input", &words.LR, 0, "rowadagrad(lr=0.125)", 0.125, ""},
	} {
		*x.lr = x.given
		spec := Default(x.settings)
		b, err := spec.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s, err := (&savedRun{Spec: b}).spec([]checkpoint.Table{{Name: "relation", Rule: "add"}, {Name: x.table, Rule: x.rule}, {Name: "other", Rule: "add"}})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ LR float32 }
		if b, err = json.Marshal(s.Task); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &got); err != nil || got.LR != x.want {
			t.Errorf("%s with a rate of %v in the settings goes on with %v, want %v (%v)", s.Task.Name(), x.given, got.LR, x.want, err)
		}
		said := strings.Join(openWarnings(&s, "v1", "v2"), "; ")
		if !strings.Contains(said, x.warnings) || (said == "") != (x.warnings == "") {
			t.Errorf("%s says %q, want it to say %q", s.Task.Name(), said, x.warnings)
		}
		if said := openWarnings(&s, "v2", "v2"); said != nil {
			t.Errorf("%s says %q though the version is the same", s.Task.Name(), said)
		}
	}
}

// Checkpoints have the rows that changed, also of a run that goes on; and that is the model.
func TestCheckpointsHaveWhatChanged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	spec.Workers, spec.Options = 1, train.Options{Epochs: 6, EvalEvery: 1}
	local(t, spec, dir, NodeConfig{})
	want := digests(t, dir)
	first := manifests(t, dir)
	incremental := func(all []*checkpoint.Manifest) (n int) {
		for _, m := range all {
			n += min(1, len(m.BuildsOn))
		}
		return n
	}
	if n := incremental(first); n == 0 || n == len(first) {
		t.Errorf("%d of %d checkpoints are incremental", n, len(first))
	}
	from := first[len(first)-2]
	s, err := Resumed(t.Context(), numberedPlace(dir, from.Number))
	if err != nil {
		t.Fatal(err)
	}
	local(t, s, dir, NodeConfig{})
	later := manifests(t, dir)[len(first):]
	if built := later[0].BuildsOn; checkpoint.Incremental(from) != (len(built) > 0) || len(built) > 0 && built[len(built)-1].Number != from.Number {
		t.Errorf("the first one of the run that goes on with checkpoint %d, which builds on %d, builds on %+v", from.Number, len(from.BuildsOn), built)
	}
	if got := digests(t, dir); got[6] != want[6] {
		t.Errorf("the digest is %v, and was %v", got[6], want[6])
	}
}

func TestARunEndsWithItsBestModel(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "model")
	spec := tiny(1)
	spec.Workers, spec.Options = 1, train.Options{Epochs: 40, EvalEvery: 1, Patience: 2}
	var evals []Evaluation
	r := local(t, spec, dir, NodeConfig{Export: out, Progress: func(e Event) {
		if e.Evaluation != nil && e.Evaluation.Epoch > 0 {
			evals = append(evals, *e.Evaluation)
		}
	}})
	if r.End != train.NoImprovement {
		t.Skip("the run improved to its end: ", r.End, len(evals))
	}
	best := r.Epochs - 2
	store, err := checkpoint.OpenStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	number, err := checkpoint.Best(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if r.Best != best || r.Exported != out {
		t.Errorf("the model of epoch %d was exported to %q, want that of %d; %d epochs", r.Best, r.Exported, best, r.Epochs)
	}
	again, err := ExportCheckpoint(t.Context(), numberedPlace(dir, number), NodeConfig{})
	if err != nil || fmt.Sprint(again.Test) != fmt.Sprint(r.Test) {
		t.Errorf("test %v, want that of the best model, %v: %v", r.Test, again, err)
	}
}

// Without a place for checkpoints they are beside the export, until the run has ended well.
func TestARunWithoutCheckpointsExportsItsBestModel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	spec := tiny(2)
	spec.Options = train.Options{Epochs: 40, EvalEvery: 1, Patience: 2}
	if err := os.MkdirAll(Beside(out), 0o777); err != nil { // a run that was killed early left it
		t.Fatal(err)
	}
	written, best := 0, 0
	r, err := Local(timeout(t), "r", spec, NodeConfig{Export: out, Progress: func(e Event) {
		if e.Checkpoint != nil && e.Checkpoint.Error == "" {
			written, best = written+1, e.Checkpoint.Epoch
			if e.Checkpoint.Place != numberedPlace(Beside(out), e.Checkpoint.Number) {
				t.Errorf("a checkpoint is at %s", e.Checkpoint.Place)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.End != train.NoImprovement {
		t.Skip("the run improved to its end: ", r.End)
	}
	if r.Best != r.Epochs-2 || best != r.Best || r.Exported != out || written == 0 {
		t.Errorf("the model of epoch %d of %d was exported to %q, the last of %d checkpoints was of epoch %d", r.Best, r.Epochs, r.Exported, written, best)
	}
	if _, err := os.Stat(Beside(out)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the checkpoints are left: %v", err)
	}
}

func TestWhatCannotBeResumedIsSaidBeforeTraining(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	local(t, spec, dir, NodeConfig{})
	for want, change := range map[string]func(s *Spec){
		"its seed was":               func(s *Spec) { s.Seed++ },
		"checkpoint 77":              func(s *Spec) { s.Resume = dir + "#77" },
		"there is no checkpoint":     func(s *Spec) { s.Resume = dir + "/nothing" },
		"choose one of them":         func(s *Spec) { s.InitFrom = dir },
		"of the task kge, not of mf": func(s *Spec) { s.Task = reusable()["mf, biased true"].Task },
		"go on with it (--resume)":   func(s *Spec) { s.Resume = "" },
		"no stores of the kind":      func(s *Spec) { s.Checkpoint = "nothing://x" },
	} {
		s, err := Resumed(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		change(&s)
		_, err = Local(t.Context(), "r", s, NodeConfig{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A torn task has more tables than a checkpoint can hold.
type torn struct{ task.Task }

func (torn) Tables() []godwit.Table {
	tables := make([]godwit.Table, 4097)
	for i := range tables {
		tables[i] = godwit.Table{Name: fmt.Sprint("t", i), Rows: 1, Dim: 1}
	}
	return tables
}

func TestAModelThatNoCheckpointHoldsIsRefusedBeforeTraining(t *testing.T) {
	spec := tiny(1)
	loaded, err := spec.Task.Load(task.Setup{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"", filepath.Join(t.TempDir(), "runs")} {
		spec.Checkpoint = place
		_, err := spec.prepareSaver(t.Context(), "r", torn{loaded})
		if refused := err != nil && strings.Contains(err.Error(), "4097 tables, want 1 … 4096"); refused != (place != "") {
			t.Errorf("checkpoints at %q: %v", place, err)
		}
		if _, err := os.Stat(place); err == nil {
			t.Errorf("%s was made", place)
		}
	}
}

func TestASecondRunAtOnePlaceIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	second := make(chan error, 1)
	local(t, spec, dir, NodeConfig{Progress: func(e Event) {
		if e.Epoch != nil && len(second) == 0 {
			s := spec
			s.Checkpoint = dir
			_, err := Local(context.Background(), "second", s, NodeConfig{})
			second <- err
		}
	}})
	if err := <-second; !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "the run r,") {
		t.Errorf("the second run got %v", err)
	}
}

func TestADiskThatFailsDoesNotEndTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(2)
	spec.Options.EvalEvery = 1
	var failed []string
	local(t, spec, dir, NodeConfig{Progress: func(e Event) {
		switch {
		case e.Start != nil: // a folder in the place of the manifest
			if err := os.MkdirAll(filepath.Join(dir, "checkpoint-0000000001.jsonl"), 0o777); err != nil {
				t.Error(err)
			}
		case e.Checkpoint != nil:
			failed = append(failed, e.Checkpoint.Error)
		}
	}})
	if len(failed) < 2 || !strings.Contains(failed[0], "checkpoint-0000000001.jsonl") || failed[1] != "" { // the next one is another object
		t.Errorf("the checkpoints failed with %q", failed)
	}
}

func TestCheckpointsTakeAHundredthOfTheTime(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0:               10 * time.Second, // nobody knows yet
		1:               99,
		time.Second:     99 * time.Second,
		6 * time.Second: 594 * time.Second,
		time.Hour:       10 * time.Minute,
	} {
		if got := apart(cost); got != want {
			t.Errorf("checkpoints that take %v are %v apart, want %v", cost, got, want)
		}
	}
}
