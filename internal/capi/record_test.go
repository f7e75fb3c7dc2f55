package capi

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/telemetry/record"
)

func TestARunWritesWhatItsNodesDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ads")
	c := open(t, Config{Trace: dir, Program: "train.py", Tables: []Table{{Name: "t", Rows: 10, Dim: 1}}})
	w := worker(t, c, 0)
	done(t, w)(w.Push(0, []int64{1, 2, 3}, []float32{1, 1, 1}, 0, 1, 0, 0))
	for range 4 {
		_, err := w.Advance()
		must(t, err)
	}
	must(t, c.Note([]byte(`{"epoch": {"epoch": 1, "of": 3, "loss": null, "items": 20}}`)))
	for _, bad := range []string{`{"end": {}}`, `{"none": 1}`, ``} {
		if c.Note([]byte(bad)) == nil {
			t.Errorf("event %q is no error", bad)
		}
	}
	if over, err := c.Close(time.Minute); !over || err != nil {
		t.Fatal(over, err)
	}
	r, err := record.Open(dir)
	must(t, err)
	if s := r.Start(); s == nil || s.Task != "train.py" || len(s.Nodes) != 1 {
		t.Errorf("the run began as %+v", s)
	}
	if r.End() == nil || len(r.Events) != 3 || r.Events[1].Epoch == nil || r.Events[1].Epoch.Of != 3 {
		t.Errorf("events are %+v", r.Events)
	}
	last := r.Nodes[0].Samples[len(r.Nodes[0].Samples)-1]
	if last.Items != 4 || last.Accesses.Local != 3 {
		t.Errorf("the last sample has %d steps and %d accesses, want 4 and 3", last.Items, last.Accesses.Local)
	}
	if _, err := Open([]byte(`{"trace": "` + dir + `", "tables": [{"name": "t", "rows": 10, "dim": 1}]}`)); err == nil {
		t.Error("a second run in the folder is no error")
	}
	if _, err := Open([]byte(`{"nodes": 2, "trace": "` + dir + `2", "tables": [{"name": "t", "rows": 10, "dim": 1}]}`)); err == nil {
		t.Error("a trace of two nodes in a process is no error")
	}
	if err := open(t, Config{Tables: []Table{{Name: "t", Rows: 10, Dim: 1}}}).Note([]byte(`{"warning": "x"}`)); err != nil {
		t.Errorf("without a trace: %v", err)
	}
}
