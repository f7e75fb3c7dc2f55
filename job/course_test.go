package job

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
)

// A run that goes on from an earlier checkpoint than the last one says so, and what it gave up is not its best model.
func TestARunGivesUpWhatCameBehindTheCheckpointThatItResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	spec.Workers, spec.Options = 1, train.Options{Epochs: 3, EvalEvery: 1}
	local(t, spec, dir, NodeConfig{})
	former := manifests(t, dir)
	from, last := former[0].Number, former[len(former)-1].Number
	s, err := Resumed(t.Context(), numberedPlace(dir, from))
	if err != nil {
		t.Fatal(err)
	}
	s.Options = train.Options{Epochs: former[0].Epochs + 1, EvalEvery: 1}
	local(t, s, dir, NodeConfig{})
	for _, m := range manifests(t, dir) {
		want := checkpoint.Resumed{From: from, Next: last + 1}
		if own := m.Number > last; own != (m.Resumed != nil) || own && *m.Resumed != want {
			t.Errorf("checkpoint %d is of a run that resumed %+v, want %+v behind %d", m.Number, m.Resumed, want, last)
		}
	}
	store, err := checkpoint.OpenStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	best, err := checkpoint.Best(t.Context(), store)
	if err != nil || slices.ContainsFunc(former[1:], func(m *checkpoint.Manifest) bool { return m.Number == best }) {
		t.Errorf("the best is %d, which was given up, %v", best, err)
	}
}
