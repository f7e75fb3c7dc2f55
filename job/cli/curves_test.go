package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
)

// Each run of a command has a curve, which grows while it is trained.
func TestCurvesAreWrittenWhileRunsGoOn(t *testing.T) {
	dir := t.TempDir()
	c := curves{plot: filepath.Join(dir, "c.svg"), board: filepath.Join(dir, "tb"), task: "kge"}
	take := func(e job.Event) {
		t.Helper()
		e.Time = time.Unix(1e9, 0)
		if err := c.event(e); err != nil {
			t.Fatal(err)
		}
	}
	picture := func() string {
		t.Helper()
		b, err := os.ReadFile(c.plot)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	take(job.Event{Waiting: &job.Waiting{}})
	for _, policy := range []string{"adaptive", "static"} {
		take(job.Event{Run: "r-" + policy, Policy: policy, Start: &job.Start{}})
		take(job.Event{Evaluation: &job.Evaluation{Metrics: job.SplitMetrics{{Name: "MRR", Value: 0.01}}}})
		take(job.Event{Epoch: &job.Epoch{Epoch: 1, Loss: 0.5, Items: 10, Seconds: 1}})
		take(job.Event{Evaluation: &job.Evaluation{Epoch: 1, Metrics: job.SplitMetrics{{Split: "train", Name: "MRR", Value: 0.9}, {Split: "valid", Name: "MRR", Value: 0.7}}}})
		if s := picture(); !strings.Contains(s, policy+" after epoch 1: loss 0.5, valid MRR 0.7") {
			t.Errorf("%s: %s", policy, s)
		}
		take(job.Event{Result: &job.Result{Epochs: 1, Test: job.Metrics{{Name: "MRR", Value: 0.6}}}})
		files, err := filepath.Glob(filepath.Join(dir, "tb", "r-"+policy, "events.out.tfevents.*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"loss", "items per second", "valid/MRR", "train/MRR", "test/MRR"} {
			if !strings.Contains(string(b), name) {
				t.Errorf("%s: the file for TensorBoard lacks %q", policy, name)
			}
		}
	}
	if s := picture(); !strings.Contains(s, ">adaptive</text>") || !strings.Contains(s, ">static</text>") {
		t.Error(s)
	}
}

// A folder that cannot be written to is told once, and no run ends because of it.
func TestCurvesThatCannotBeWrittenAreToldOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	c := curves{plot: filepath.Join(file, "c.svg"), board: filepath.Join(file, "tb")}
	told := 0
	for _, e := range []job.Event{{Start: &job.Start{}}, {Epoch: &job.Epoch{Epoch: 1}}, {Result: &job.Result{}}} {
		if c.event(e) != nil {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times", told)
	}
}

// Where curves cannot be written, or something else would be lost, is found out before training.
func TestCurvesReplaceNothingButPictures(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"notes.txt": "notes", "empty.svg": "", "old.svg": "<svg></svg>"} {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link.svg": "old.svg", "notes.svg": "notes.txt"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		c    curves
		want string // of the error; empty: none
	}{
		{curves{}, ""},
		{curves{plot: at("new.svg")}, ""},
		{curves{plot: at("empty.svg")}, ""},
		{curves{plot: at("old.svg")}, ""},
		{curves{plot: at("link.svg")}, ""},
		{curves{board: at("tb")}, ""},
		{curves{plot: at("notes.txt")}, "--plot " + at("notes.txt") + ": it holds something else"},
		{curves{plot: at("notes.svg")}, "it holds something else"},
		{curves{plot: dir}, "it is a folder"},
		{curves{plot: os.DevNull}, "it is not a regular file"},
		{curves{plot: at("no/a.svg")}, "there is no folder " + at("no")},
		{curves{board: at("notes.txt")}, "--tensorboard " + at("notes.txt")},
	} {
		err := x.c.check()
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: got %v, want %q", x.c, err, x.want)
		}
	}
	c := curves{plot: at("link.svg"), task: "kge"}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	for _, e := range []job.Event{{Start: &job.Start{}}, {Epoch: &job.Epoch{Epoch: 1}}} {
		if err := c.event(e); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(at("old.svg"))
	if target, lerr := os.Readlink(at("link.svg")); err != nil || lerr != nil || target != "old.svg" || !strings.Contains(string(b), "epoch 1") {
		t.Errorf("the link points to %q, and its file has %q: %v, %v", target, b, lerr, err)
	}
}
