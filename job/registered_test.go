package job

import (
	"strings"
	"testing"

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
