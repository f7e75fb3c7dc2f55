package job

import (
	"path/filepath"
	"strings"
	"testing"
)

// A run that goes on and has nothing to train says so: its figures are those of the checkpoint.
func TestARunWithNothingLeftToTrainSaysSo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	spec.Options.Epochs, spec.Options.EvalEvery = 2, 1
	local(t, spec, dir, NodeConfig{})
	for _, c := range []struct {
		epochs int
		says   string // empty: nothing
	}{
		{2, "has 2 epochs, and --epochs asks for 2"}, {1, "has 2 epochs, and --epochs asks for 1"}, {3, ""},
	} {
		s, err := Resumed(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s.Options.Epochs, s.Checkpoint = c.epochs, ""
		var warnings []string
		if _, err := Local(t.Context(), "again", s, NodeConfig{Progress: func(e Event) {
			if e.Warning != "" {
				warnings = append(warnings, e.Warning)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(warnings, "\n"); (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
			t.Errorf("%+v: it says %q", c, said)
		}
	}
}
