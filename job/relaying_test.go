package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/checkpoint"
)

// Rows that other nodes send to the leader, and get from it, are those of checkpoints that all nodes see.
func TestCheckpointsThatOneNodeSees(t *testing.T) {
	for _, name := range []string{"complex", "mf, biased true", "weights"} { // the second has no chunks
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "runs")
			spec := reusable()[name]
			spec.Nodes, spec.Workers, spec.Options.Epochs, spec.Relayed = 3, 1, 2, true
			local(t, spec, dir, NodeConfig{})
			all := manifests(t, dir)
			if len(all) == 0 || len(all[len(all)-1].Parts) != 1 {
				t.Fatalf("the checkpoints are %+v", all)
			}
			want := digests(t, dir)[2]
			from := dir
			for i, relayed := range []bool{true, false, true} { // to three nodes, to those that see the folder, and back
				s, err := Resumed(t.Context(), from)
				if err != nil {
					t.Fatal(err)
				}
				s.Nodes, s.Policy, s.Relayed = 4-i, "static", relayed
				to := filepath.Join(t.TempDir(), "runs")
				local(t, s, to, NodeConfig{}) // writes what it found to the new place
				if got := digests(t, to)[2]; got != want {
					t.Fatalf("restored on %d nodes, the digest is %v, want %v", s.Nodes, got, want)
				}
				from = to
			}
			s, err := Resumed(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			s.Nodes, s.Relayed, s.Options.Epochs = 2, true, 3
			if r := local(t, s, from, NodeConfig{}); r.Epochs != 3 {
				t.Errorf("gone on with, the result is %+v", r)
			}
		})
	}
}

// A folder of the leader that cannot be written costs a checkpoint, and holds up no node that sends its rows.
func TestALeaderThatCannotWriteHoldsUpNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(3)
	spec.Options.EvalEvery, spec.Relayed = 1, true
	var failed []string
	r := local(t, spec, dir, NodeConfig{Progress: func(e Event) {
		var err error
		switch {
		case e.Start != nil: // a file in its place
			err = errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600))
		case e.Checkpoint != nil:
			if failed = append(failed, e.Checkpoint.Error); len(failed) == 1 {
				err = errors.Join(os.Remove(dir), os.Rename(dir+".away", dir))
			}
		}
		if err != nil {
			t.Error(err)
		}
	}})
	if len(failed) < 2 || failed[0] == "" || failed[len(failed)-1] != "" {
		t.Errorf("the checkpoints failed with %q", failed)
	}
	if r.CheckpointError != "" {
		t.Errorf("the result says %q, and the last checkpoint is there", r.CheckpointError)
	}
	if _, err := checkpoint.OpenPlace(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

// A run that keeps nothing says so in its result. With an export, the model is kept.
func TestARunWhoseLastCheckpointFailsSaysThatNothingKeepsTheModel(t *testing.T) {
	for _, exports := range []bool{false, true} {
		dir, cfg := filepath.Join(t.TempDir(), "runs"), NodeConfig{}
		if exports {
			cfg.Export = filepath.Join(t.TempDir(), "model")
		}
		cfg.Progress = func(e Event) {
			if e.Start != nil { // a file in its place
				if err := errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Error(err)
				}
			}
		}
		r := local(t, tiny(1), dir, cfg)
		if lost := strings.Contains(r.CheckpointError, "nothing keeps the model") && strings.Contains(r.CheckpointError, dir); lost == exports {
			t.Errorf("with an export: %v; the result says %q", exports, r.CheckpointError)
		}
		if (r.Exported == "") == exports {
			t.Errorf("exported to %q", r.Exported)
		}
	}
}
