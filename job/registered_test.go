package job

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/train/task"
)

// stray are settings of a task that is not registered, or of another one.
type stray struct {
	task.Sketch
	name string
}

func (s *stray) Name() string { return s.name }

func TestALeaderWhoseTaskTheOthersCannotKnowSaysSo(t *testing.T) {
	for name, want := range map[string]string{"stray": "task.Register", "kge": "are *task.KGE"} {
		spec := Default(&stray{*task.DefaultSketch(), name})
		spec.Nodes = 2
		_, err := Lead(t.Context(), Leader{Spec: spec, Run: "r", Command: []string{"false"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("task %q: %v, want %s", name, err, want)
		}
	}
}

// A checkpoint is no node: what cannot be read of it is no setting in which nodes differ.
func TestACheckpointThatThisProgramCannotUseSaysWhy(t *testing.T) {
	for _, x := range []struct{ name, version, want string }{
		{"stray", "1", `the task "stray", and this program has kge, `},
		{"kge", "1", "the settings of the run that wrote the checkpoint cannot be read"},
		{"kge", "2", `the section "run" has version 2, and this program reads 1: use the version of godwit that wrote it`},
	} {
		name, want := x.name, x.want
		dir := filepath.Join(t.TempDir(), "runs")
		s, err := checkpoint.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		tables, id := []checkpoint.Table{{Name: "t", Rows: 1, Dim: 1, Width: 1, Rule: "add", Init: "zero"}}, checkpoint.NewID(1)
		p, err := checkpoint.Write(t.Context(), s, id, 0, tables, func(w *checkpoint.Writer) error {
			return w.Section(runSection, []byte(`{"version":`+x.version+`,"spec":{"task":"kge","sead":1},"state":{"version":1}}`))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Commit(t.Context(), s, checkpoint.Manifest{ID: id, Run: "r", Task: name, Program: "v9", Tables: tables}, []*checkpoint.Piece{p}); err != nil {
			t.Fatal(err)
		}
		if _, err := Resumed(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir+`#1, which version "v9" wrote`) || errors.Is(err, coord.ErrMismatch) {
			t.Errorf("task %q: %v, want %s", name, err, want)
		}
	}
}
