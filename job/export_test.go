package job

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

func TestAnExportSaysHowTheModelWasTrained(t *testing.T) {
	var a album
	dir := filepath.Join(t.TempDir(), "model")
	spec := tiny(2)
	spec.Seed = 7
	r, err := Local(timeout(t), "test", spec, NodeConfig{Export: dir, Progress: a.keep})
	if err != nil {
		t.Fatal(err)
	}
	m, err := export.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Task != "kge" || m.Model != "complex" || m.Dim != 16 || m.Version != Version() || len(m.Files) != 4 || !strings.Contains(m.File("entities.npy").Layout, "imaginary") {
		t.Errorf("the export is described as %+v", m)
	}
	if m.Run.Name != "test" || m.Run.Seed != 7 || m.Run.Epochs != 3 || m.Run.End != string(train.AllEpochs) || !strings.HasPrefix(m.Run.Data.Fingerprint, "xxh3:") {
		t.Errorf("the run is described as %+v", m.Run)
	}
	var metrics map[string]Metrics
	if err := json.Unmarshal(m.Run.Metrics, &metrics); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(metrics["test"], r.Test) || !slices.Equal(metrics["untrained"], r.Untrained) || !(metrics["valid"].At("MRR") > 0) {
		t.Errorf("the metrics are %v, the result has %v", metrics, r.Test)
	}
	again, err := Decode(m.Run.Spec)
	if err != nil || again.Task.(*task.KGE).Dim != 16 || again.Seed != 7 {
		t.Errorf("the settings are %+v, %v", again, err)
	}
	start := a.events[slices.IndexFunc(a.events, func(e Event) bool { return e.Start != nil })]
	if start.Run != "test" || start.Time.IsZero() || start.Start.Fingerprint != m.Run.Data.Fingerprint || start.Start.Version == "" {
		t.Errorf("the start is %+v", start.Start)
	}
	if told, err := Decode(start.Start.Spec); err != nil || told.Options.Epochs != 3 {
		t.Errorf("the start tells the settings %+v, %v", told, err)
	}
}

// Nothing is trained, nor are data read, for a model that cannot be written.
func TestAnExportIsProbedBeforeAnything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.MkdirAll(filepath.Join(dir, "thesis"), 0o777); err != nil {
		t.Fatal(err)
	}
	spec := tiny(1)
	spec.Data = "/nowhere"
	_, err := Local(timeout(t), "test", spec, NodeConfig{Export: dir, Progress: func(e Event) { t.Errorf("it tells %+v", e) }})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "thesis") {
		t.Errorf("an export over other files: %v", err)
	}
}

// spoil has something come into the way of an export while the model is trained.
func spoil(t *testing.T, dir string) func(Event) {
	var once sync.Once
	return func(e Event) {
		if e.Epoch == nil {
			return
		}
		once.Do(func() {
			if err := os.MkdirAll(filepath.Join(dir, "thesis"), 0o777); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAModelThatCannotBeWrittenIsRescued(t *testing.T) {
	for _, full := range []bool{false, true} {
		temp, home, dir := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "model")
		t.Setenv("HOME", home)
		t.Setenv("TMPDIR", temp)
		want := filepath.Join(temp, "godwit-rescued-test")
		if full {
			t.Setenv("TMPDIR", filepath.Join(os.DevNull, "none"))
			want = filepath.Join(home, "godwit-rescued-test")
		}
		r, err := Local(timeout(t), "test", tiny(2), NodeConfig{Export: dir, Progress: spoil(t, dir)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Exported != want || !strings.Contains(r.ExportError, "thesis") || !strings.Contains(r.ExportError, want) {
			t.Errorf("exported to %q, want %s: %s", r.Exported, want, r.ExportError)
		}
		m, err := export.Read(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(want, "entities.npy"); err != nil {
			t.Error(err)
		}
	}
}

func TestAModelThatCanBeWrittenNowhereEndsTheRunAllTheSame(t *testing.T) {
	nowhere := filepath.Join(os.DevNull, "none")
	dir := filepath.Join(t.TempDir(), "model")
	t.Setenv("HOME", nowhere)
	t.Setenv("TMPDIR", nowhere)
	here := t.TempDir()
	t.Chdir(here)
	// A file is in the way here, too.
	if err := os.WriteFile("godwit-rescued-test", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Local(timeout(t), "test", tiny(1), NodeConfig{Export: dir, Progress: spoil(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Exported != "" || strings.Count(r.ExportError, "nor can it be rescued") != 3 || !(r.Test.At("MRR") > 0) {
		t.Errorf("the result is %+v", r)
	}
}

func TestTooSmallADiskIsWarnedOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	spec := tiny(1)
	loaded, err := spec.load(t.Context(), &NodeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if w := (&NodeConfig{Export: dir}).diskWarnings(&spec, loaded); len(w) != 0 {
		t.Errorf("a small model: %s", w)
	}
	if w := (&NodeConfig{Export: dir}).diskWarnings(&spec, vast{loaded}); len(w) != 1 || !strings.Contains(w[0], dir) {
		t.Errorf("a model of 2^60 floats: %s", w)
	}
	if w := (&NodeConfig{}).diskWarnings(&spec, vast{loaded}); len(w) != 0 {
		t.Errorf("a model that is not exported: %s", w)
	}
}

// A run that is to end by --patience is told that it is judged by what it is tested on, if so.
func TestAModelThatIsChosenByItsTestIsWarnedOf(t *testing.T) {
	for _, x := range []struct {
		name        string
		valid, test bool
		patience    int
		want        bool
	}{{"no data to validate on", false, true, 3, true}, {"data for both", true, true, 3, false}, {"no data for either", false, false, 3, false}, {"no patience", false, true, 0, false}} {
		g := &triples.Graph{Entities: []string{"a", "b"}, Relations: []string{"r"}, Train: []triples.Triple{{S: 0, R: 0, O: 1}, {S: 1, R: 0, O: 0}}}
		if x.valid {
			g.Valid = g.Train[:1]
		}
		if x.test {
			g.Test = g.Train[1:]
		}
		dir := t.TempDir()
		if err := g.Write(dir); err != nil {
			t.Fatal(err)
		}
		s := task.DefaultKGE()
		loaded, err := s.Load(task.Setup{Data: dir, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		spec := Spec{Options: train.Options{Patience: x.patience}}
		if w := choiceWarnings(&spec, loaded); (len(w) == 1) != x.want {
			t.Errorf("%s: %q", x.name, w)
		}
	}
}

// Of several evaluations with checkpoints, the best model is taken: by the test data, where there are no others.
func TestAModelThatIsTheBestByItsTestIsWarnedOf(t *testing.T) {
	text, counts := task.DefaultW2V(), task.DefaultLDA()
	text.Corpus.Words, text.Corpus.Stems, text.Corpus.Forms = 5000, 5, 2
	counts.Documents.Documents = 50
	for _, x := range []struct {
		s     task.Settings
		place string
		every int
		want  bool
	}{{text, "runs", 2, true}, {text, "", 2, false}, {text, "runs", 0, false}, {text, "runs", 4, false}, {counts, "runs", 2, false}} {
		loaded, err := x.s.Load(task.Setup{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		spec := Spec{Checkpoint: x.place, Options: train.Options{Epochs: 4, EvalEvery: x.every}}
		if w := choiceWarnings(&spec, loaded); (len(w) == 1) != x.want {
			t.Errorf("%s, checkpoints at %q, evaluations every %d of 4 epochs: %q", x.s.Name(), x.place, x.every, w)
		}
		spec = Spec{Options: train.Options{Epochs: 4, EvalEvery: 1, Patience: 1}}
		if w := choiceWarnings(&spec, loaded); len(w) != 1 {
			t.Errorf("%s with patience: %q", x.s.Name(), w)
		}
	}
}

// A vast task has a table of 2^60 floats.
type vast struct{ task.Task }

func (vast) Tables() []godwit.Table {
	return []godwit.Table{{Name: "vast", Rows: 1 << 50, Dim: 1 << 10}}
}

func TestFingerprintsNameWhatDiffers(t *testing.T) {
	load := func(name string) task.Task {
		g := &triples.Graph{Entities: []string{name, "b"}, Relations: []string{"r"}, Train: []triples.Triple{{S: 0, R: 0, O: 1}, {S: 1, R: 0, O: 0}}}
		g.Valid, g.Test = g.Train, g.Train
		dir := t.TempDir()
		if err := g.Write(dir); err != nil {
			t.Fatal(err)
		}
		loaded, err := task.DefaultKGE().Load(task.Setup{Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	lines := func(spec string, loaded task.Task) []string {
		return strings.Split(fingerprint([]byte(spec), loaded), "\n")
	}
	a := lines("spec", load("a"))
	for what, b := range map[string][]string{
		"":         lines("spec", load("a")),
		"settings": lines("other", load("a")),
		"data":     lines("spec", load("c")),
	} {
		differs := ""
		for i := range a {
			if a[i] != b[i] && differs == "" {
				differs, _, _ = strings.Cut(a[i], ":")
			}
		}
		if len(a) != 4 || differs != what {
			t.Errorf("%q differs first, want %q:\n%v\n%v", differs, what, a, b)
		}
	}
}

func TestMetricsOfEvaluationsAreBySplitInJSON(t *testing.T) {
	j := SplitMetrics{{Name: "RMSE", Value: 0.9}, {Name: "RMSE", Split: "train", Value: 0.7}, {Name: "MAE", Split: "train", Value: math.NaN()}, {Name: "MAE", Value: 0.5}}
	b, err := json.Marshal(j)
	if err != nil || string(b) != `{"test":{"RMSE":0.9,"MAE":0.5},"train":{"RMSE":0.7,"MAE":null}}` {
		t.Fatalf("%s, %v", b, err)
	}
	var back SplitMetrics
	if err := json.Unmarshal(b, &back); err != nil || len(back) != 4 || back[1].Label() != "MAE" || back[2].Label() != "train RMSE" || !math.IsNaN(back[3].Value) {
		t.Errorf("it came back as %v, %v", back, err)
	}
}
