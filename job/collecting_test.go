package job

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/train/task"
)

// led runs a leader and two other nodes, each with a folder of its own, which may be none. A leader that is late is the last one to join: it is not node 0.
func led(t *testing.T, spec Spec, late bool, folders [3]string, progress func(Event)) {
	t.Helper()
	at := newMemory(t, 3)
	ctx := timeout(t)
	var wg sync.WaitGroup
	for _, dir := range folders[1:] {
		wg.Go(func() {
			if _, err := Join(ctx, Joiner{Run: "r", Coordinator: at, NodeConfig: NodeConfig{Trace: dir}}); err != nil {
				t.Errorf("Join: %v", err)
			}
		})
	}
	lead := Leader{Spec: spec, Run: "r", Coordinator: at}
	if late {
		lead.Coordinator = lateJoiner{at}
	}
	lead.Trace, lead.Progress = folders[0], progress
	if _, err := Lead(ctx, lead); err != nil {
		t.Errorf("Lead: %v", err)
	}
	wg.Wait()
}

// A lateJoiner is the last one of three to join.
type lateJoiner struct{ *memory }

func (m lateJoiner) Join(ctx context.Context, cfg coord.Config) (coord.Session, error) {
	for m.count("join") < 2 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return m.memory.Join(ctx, cfg)
}

// count returns how often the coordinator was called for something.
func (m *memory) count(what string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		if c == what {
			n++
		}
	}
	return n
}

// contents returns what the files of the nodes of a run are, by node and path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "r", "node-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Join(filepath.Base(filepath.Dir(p)), filepath.Base(p))] = string(b)
	}
	return all
}

// The leader's folder has what each node wrote to a folder of its own: the same bytes of its trace but for what it did while it left, and the same samples.
// The lives of keys agree, and reigns of all nodes are in one order.
func TestNodesWithFoldersOfTheirOwnAreShownAtTheLeader(t *testing.T) {
	for i, late := range []bool{false, true, true} {
		relayed := i == 2
		t.Run(fmt.Sprintf("late=%t,relayed=%t", late, relayed), func(t *testing.T) {
			folders := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
			spec := tiny(3)
			if relayed {
				spec.Checkpoint, spec.Relayed, spec.Options.EvalEvery = filepath.Join(t.TempDir(), "runs"), true, 1
			}
			led(t, spec, late, folders, func(e Event) {
				if e.Warning != "" {
					t.Errorf("warning: %s", e.Warning)
				}
				for begin := time.Now(); e.Epoch != nil && len(contents(t, folders[0])) < 6; time.Sleep(time.Millisecond) {
					if time.Since(begin) > time.Minute {
						t.Error("nothing has come of the others while the run lasts")
						return
					}
				}
			})
			at := contents(t, folders[0])
			var own []*trace.Trace
			others := 0
			for _, dir := range folders[1:] {
				for path, want := range contents(t, dir) {
					got, ok := at[path]
					if !ok || len(got) == 0 || !strings.HasPrefix(want, got) {
						t.Errorf("%s: the leader has %d bytes, the node %d, and they are no begin of these", path, len(got), len(want))
					}
					if n := len(want) - len(got); filepath.Ext(path) == ".trace" {
						t.Logf("%s: %d bytes, %d of the time after the end", path, len(want), n)
					}
					others++
				}
				tr, err := trace.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				own = append(own, tr)
			}
			if others != 4 || len(at) != 6 {
				t.Errorf("the leader has %d files, the others %d", len(at), others)
			}
			all, err := trace.Open(folders[0])
			if err != nil {
				t.Fatal(err)
			}
			rec, err := record.Open(folders[0])
			if err != nil {
				t.Fatal(err)
			}
			for n := range godwit.NodeID(3) {
				if int(n) >= len(rec.Nodes) || rec.Nodes[n] == nil || len(rec.Nodes[n].Samples) == 0 {
					t.Errorf("no samples of node %d", n)
				}
			}
			for _, tr := range own {
				for n := range tr.Starts() {
					want, err := tr.At(n, 1<<62)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := all.At(n, 1<<62); err != nil || !maps.Equal(got, want) {
						t.Errorf("node %d has %d keys at the end, %d of them at the leader, or others (%v)", n, len(want), len(got), err)
					}
				}
			}
			owners := map[godwit.NodeID]bool{}
			for k := range godwit.Key(150) {
				l, err := all.Life(k)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range l.Reigns {
					owners[r.Owner] = true
				}
			}
			if len(owners) != 3 {
				t.Errorf("only %v owned keys", owners)
			}
		})
	}
}

// A node without a folder is shown as well, and leaves nothing behind. Who leads without a folder asks for nothing.
func TestALeaderWithoutAFolderAsksForNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, leads := range []string{t.TempDir(), ""} {
		folders := [3]string{leads, "", t.TempDir()}
		want := map[bool]int{true: 3, false: 0}[leads != ""]
		led(t, tiny(3), false, folders, nil)
		nodes := 0
		if leads != "" {
			tr, err := trace.Open(leads)
			if err != nil {
				t.Fatal(err)
			}
			nodes = len(tr.Starts())
		}
		if nodes != want || len(contents(t, folders[2])) != 2 {
			t.Errorf("leader's folder %q: %d nodes are shown, want %d; the node has %d files of its own", leads, nodes, want, len(contents(t, folders[2])))
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%v was left behind (%v)", left, err)
		}
	}
}

// Nodes that see the leader's folder write to it themselves.
func TestNodesThatSeeTheFolderSendNothing(t *testing.T) {
	dir := t.TempDir()
	led(t, tiny(3), false, [3]string{dir, dir, dir}, func(e Event) {
		if e.Warning != "" {
			t.Errorf("warning: %s", e.Warning)
		}
	})
	if all := contents(t, dir); len(all) != 6 {
		t.Errorf("there are %d files", len(all))
	}
}

// A leader whose disk takes nothing of other nodes finishes the run, as do the others, and says so.
func TestALeaderThatCannotWriteRecordsHoldsUpNobody(t *testing.T) {
	folders := [3]string{t.TempDir(), t.TempDir(), ""}
	said := ""
	led(t, tiny(3), false, folders, func(e Event) {
		if e.Start != nil { // its folder is away before a node has sent anything
			if err := os.Rename(filepath.Join(folders[0], "r"), filepath.Join(folders[0], "away")); err != nil {
				t.Error(err)
			}
		}
		said += e.Warning
	})
	if strings.Count(said, "sends its record: ") != 2 {
		t.Errorf("the leader says %q", said)
	}
}

// Nodes of a training that asks the leader nothing are shown while it lasts, too.
func TestNodesOfATrainingWithoutQuestionsAreShownAtTheLeader(t *testing.T) {
	m := task.DefaultMF()
	m.Matrix.Rows, m.Matrix.Cols, m.Matrix.Cells, m.Dim = 40, 30, 600, 4
	for _, order := range []string{"plain", "columns", "blocks"} {
		m.Order = order
		spec := Default(m)
		spec.Nodes, spec.Workers, spec.Options.Epochs = 3, 1, 2
		folders := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
		led(t, spec, false, folders, func(e Event) {
			for begin := time.Now(); e.Epoch != nil && len(contents(t, folders[0])) < 6; time.Sleep(time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Errorf("%s: nothing has come of the others while the run lasts", order)
					return
				}
			}
		})
	}
}

// A node that has nowhere to keep what it sends to the leader says what to set.
func TestAFolderForARecordThatIsNoneIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(file, "below"))
	if err := new(recorder).temporary(); err == nil || !strings.Contains(err.Error(), "not a directory: set TMPDIR to one that can be written to") {
		t.Error(err)
	}
}
