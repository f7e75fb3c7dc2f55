package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/train/task"
)

// spoil changes a bit in the middle of the only file of a pattern, or, if that says so, cuts it short.
func spoil(t *testing.T, pattern string, short bool) {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s are %q, %v", pattern, all, err)
	}
	b, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if b[len(b)/2] ^= 1; short {
		b = b[:len(b)/2]
	}
	if err := os.WriteFile(all[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A run that goes on by itself takes the checkpoint before the last one if that is damaged, and says of which it went on. It does not begin again
// for an error that is not the checkpoint's.
func TestARunGoesOnBeforeADamagedCheckpoint(t *testing.T) {
	k := task.DefaultKGE()
	k.Graph.Entities, k.Graph.Relations, k.Graph.Triples = 50, 2, 500
	k.Dim, k.Batch, k.Negatives = 4, 16, 4
	lost, failed := fmt.Errorf("node 2: %w", godwit.ErrPeerLost), errors.New("node failed")
	for what, c := range map[string]struct {
		damage func(dir string)
		begins []bool // of the parts of the run
		errs   []error
		want   []int // the checkpoint from which each part goes on, and how many nodes it has
		says   string
	}{
		"whole": {func(string) {}, []bool{true, true, true}, []error{lost, lost, nil}, []int{0, 3, 3, 2, 3, 1}, ""},
		"a row is another one": {func(dir string) { spoil(t, dir+"/checkpoint-*3.*.0.rows", false) },
			[]bool{true, false, true, true}, []error{lost, failed, lost, nil}, []int{0, 3, 3, 2, 2, 2, 2, 1}, "#3 cannot be used"},
		"a part is cut short": {func(dir string) { spoil(t, dir+"/checkpoint-*3.*.0.rows", true) }, []bool{true, true}, []error{lost, nil}, []int{0, 3, 2, 2}, "#3 cannot be used"},
		"the last two are damaged": {func(dir string) {
			spoil(t, dir+"/checkpoint-*3.*.0.rows", true)
			spoil(t, dir+"/checkpoint-*2.*.0.rows", false)
		},
			[]bool{true, true}, []error{lost, nil}, []int{0, 3, 1, 2}, "#3 cannot be used"},
		"another error":          {func(string) {}, []bool{true, false}, []error{lost, failed}, []int{0, 3, 3, 2}, ""},
		"an error when it began": {func(dir string) { spoil(t, dir+"/checkpoint-*3.*.0.rows", false) }, []bool{true, true}, []error{lost, failed}, []int{0, 3, 3, 2}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "runs")
			spec := job.Default(k)
			spec.Nodes, spec.Workers, spec.Checkpoint, spec.Keep = 1, 1, dir, 9
			spec.Options.Epochs, spec.Options.EvalEvery = 3, 1
			if _, err := job.Local(t.Context(), "r", spec, job.NodeConfig{}); err != nil {
				t.Fatal(err)
			}
			c.damage(dir)
			spec.Nodes = 3
			var said bytes.Buffer
			var got []int
			part := 0
			_, err := (&cluster{run: "r", restarts: 3}).again(t.Context(), spec, &printer{people: &said}, func(_ context.Context, s job.Spec, p *printer) (*job.Result, error) {
				from := 0
				if s.Resume != "" {
					if _, err := fmt.Sscanf(s.Resume, dir+"#%d", &from); err != nil {
						t.Error(err)
					}
				}
				got = append(got, from, s.Nodes)
				p.begun = c.begins[part]
				part++
				return nil, c.errs[part-1]
			})
			if fmt.Sprint(got) != fmt.Sprint(c.want) || err != c.errs[len(c.errs)-1] {
				t.Errorf("it went on from checkpoints with nodes %v, want %v: %v", got, c.want, err)
			}
			if text := said.String(); (c.says != "") != strings.Contains(text, "cannot be used") || !strings.Contains(text, c.says) {
				t.Errorf("it says %q, want %q", text, c.says)
			}
		})
	}
}

// A run of which a node was lost and whose end was asked for does not say that it never trained: it tells of the loss, and how to go on. It does not begin
// again if the end was asked for before.
func TestARunThatIsInterruptedBetweenItsPartsTellsHowToGoOn(t *testing.T) {
	spec := job.Default(task.DefaultKGE())
	spec.Nodes, spec.Checkpoint = 3, filepath.Join(t.TempDir(), "runs")
	for _, before := range []bool{true, false} {
		stop, parts := make(chan struct{}), 0
		c := &cluster{run: "r", restarts: 3}
		c.node.Stop = stop
		var said bytes.Buffer
		_, err := c.again(t.Context(), spec, &printer{people: &said, again: "godwit train"}, func(_ context.Context, _ job.Spec, p *printer) (*job.Result, error) {
			if parts++; parts == 2 {
				return nil, job.ErrInterrupted
			}
			p.begun, p.last = true, &job.Checkpoint{Number: 7, Place: "runs/kge"}
			if before {
				close(stop)
			}
			return nil, fmt.Errorf("node 2: %w", godwit.ErrPeerLost)
		})
		text := said.String()
		if !errors.Is(err, job.ErrInterrupted) || ExitCode(Failed(err)) != Interrupted || err.Error() != "interrupted before training began again, after this: node 2: node lost" {
			t.Errorf("%v", err)
		}
		if want := map[bool]int{true: 1, false: 2}[before]; parts != want || strings.Contains(text, "restart 1") == before || !strings.Contains(text, "godwit train --resume runs/kge\n") {
			t.Errorf("%d parts, want %d; said %q", parts, want, text)
		}
	}
}
