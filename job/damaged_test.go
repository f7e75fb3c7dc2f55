package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// untilWorse trains until the model is not the best any more: the best one is taken from its checkpoint.
var untilWorse = train.Options{Epochs: 40, EvalEvery: 1, Patience: 2}

// warnings collects warnings, and calls another function for all events.
func warnings(all *[]string, also func(Event)) func(Event) {
	return func(e Event) {
		if e.Warning != "" {
			*all = append(*all, e.Warning)
		}
		if e.Checkpoint != nil && e.Checkpoint.Error != "" {
			*all = append(*all, "failed: "+e.Checkpoint.Error)
		}
		also(e)
	}
}

// A checkpoint that cannot be read does not make those fail that are written after it, and costs the run that wrote them neither the best model nor the export.
func TestARunGoesOnBesideADamagedCheckpoint(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "model")
	spec := tiny(1)
	spec.Options.EvalEvery = 1
	local(t, spec, dir, NodeConfig{untested: true})
	all := manifests(t, dir)
	last := filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.jsonl", all[len(all)-1].Number))
	if err := os.Truncate(last, 40); err != nil {
		t.Fatal(err)
	}
	s, err := Resumed(t.Context(), numberedPlace(dir, all[len(all)-2].Number))
	if err != nil {
		t.Fatal(err)
	}
	s.Options = untilWorse
	var said []string
	r, err := Local(t.Context(), "r", s, NodeConfig{Export: out, Progress: warnings(&said, func(Event) {})})
	if err != nil || r.Best == 0 || r.Best >= r.Epochs || r.Exported == "" {
		t.Fatalf("the run ended with %+v, %v", r, err)
	}
	for _, w := range said {
		if strings.HasPrefix(w, "failed: ") {
			t.Errorf("a checkpoint %s", w)
		}
	}
}

// Without a whole checkpoint of the best model, the last one is exported, and a warning says so.
func TestTheLastModelIsExportedIfTheBestIsDamaged(t *testing.T) {
	for what, damage := range map[string]func(dir string, number uint64) error{
		"its section is cut short": func(dir string, number uint64) error {
			return cutShort(filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.*.section", number)))
		},
		"a row is another one": func(dir string, number uint64) error {
			return flip(filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.*.rows", number)))
		},
		"it is gone": func(dir string, number uint64) error {
			return os.Remove(filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.jsonl", number)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir, out := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "model")
			spec := tiny(1)
			spec.Options, spec.Checkpoint, spec.Keep = untilWorse, dir, 100
			var said []string
			r, err := Local(t.Context(), "r", spec, NodeConfig{Export: out, Progress: warnings(&said, func(e Event) {
				if e.Checkpoint != nil {
					if err := damage(dir, e.Checkpoint.Number); err != nil {
						t.Error(err)
					}
				}
			})})
			if err != nil || r.Best != 0 || r.Exported == "" || r.Test == nil {
				t.Fatalf("the run ended with %+v, %v", r, err)
			}
			if len(said) != 1 || !strings.Contains(said[0], "not the best") {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}

// one is the only file of a pattern.
func one(pattern string) (string, error) {
	all, err := filepath.Glob(pattern)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s are %q", pattern, all)
	}
	return strings.Join(all, ""), err
}

func cutShort(pattern string) error {
	path, err := one(pattern)
	if err != nil {
		return err
	}
	return os.Truncate(path, 1)
}

// flip changes a bit in the middle of a file.
func flip(pattern string) error {
	path, err := one(pattern)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(path, b, 0o600)
}

// Checkpoints beside the export stay when the run dies, also if old ones could not be removed.
func TestCheckpointsOfARunThatDiesStay(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	dir := Beside(out)
	ctx, cancel := context.WithCancelCause(t.Context())
	spec := tiny(1)
	spec.Options = train.Options{Epochs: 1000, EvalEvery: 1}
	dies := errors.New("the run dies")
	_, err := Local(ctx, "r", spec, NodeConfig{Export: out, Progress: func(e Event) {
		switch {
		case e.Start != nil: // a manifest that cannot be read: nobody knows what it names
			if err := os.WriteFile(filepath.Join(dir, "checkpoint-0000000900.jsonl"), []byte("x"), 0o600); err != nil {
				t.Error(err)
			}
		case e.Checkpoint != nil && e.Checkpoint.Error == "" && e.Checkpoint.Number > 1:
			cancel(dies)
		case e.Epoch != nil && e.Epoch.Epoch == 1000:
			t.Error("no checkpoint was written")
		}
	}})
	if !errors.Is(err, dies) {
		t.Error(err)
	}
	store, err := checkpoint.OpenStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := checkpoint.Manifests(t.Context(), store); len(all) == 0 { // the error is of the one that cannot be read
		t.Errorf("no checkpoint is left: %v", err)
	}
}

// The folder beside the export goes at once, with what an earlier run could not remove.
func TestAFolderOfARunThatHasEndedGoesAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model.checkpoints")
	if err := os.MkdirAll(filepath.Join(dir+".ended", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := &Spec{Checkpoint: dir, Temporary: true}
	v, err := spec.openSaver(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	v.close(t.Context(), &Result{}, nil)
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Checkpoints that have no place of their own go with a run that has ended well; what another run needs to go on stays.
func TestCheckpointsOfARunThatDidNotEndWellStay(t *testing.T) {
	for _, c := range []struct {
		name      string
		temporary bool
		kept      bool // a checkpoint was written
		result    *Result
		err       error
		stay      bool
	}{
		{"ended well", true, true, &Result{}, nil, false},
		{"failed", true, true, nil, errors.New("disk full"), true},
		{"failed at once", true, false, nil, errors.New("no data"), false},
		{"was stopped", true, true, &Result{End: train.Stopped}, nil, true},
		{"did not export", true, true, &Result{ExportError: "disk full"}, nil, true},
		{"has a place of its own", false, true, &Result{}, nil, true},
	} {
		dir := filepath.Join(t.TempDir(), "checkpoints")
		v, err := (&Spec{Checkpoint: dir, Temporary: c.temporary}).openSaver(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		v.kept = c.kept
		v.close(t.Context(), c.result, c.err)
		if _, err := os.Stat(dir); (err == nil) != c.stay {
			t.Errorf("a run that %s: the checkpoints stay: %v, want %v", c.name, err == nil, c.stay)
		}
	}
}

// The last checkpoint is the one that is last when the lock of the place was given to the run.
func TestTheLastCheckpointIsThatBehindTheLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	spec := tiny(1)
	spec.Options.EvalEvery = 1
	local(t, spec, dir, NodeConfig{untested: true})
	all := manifests(t, dir)
	last := filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.jsonl", all[len(all)-1].Number))
	before := numberedPlace(dir, all[len(all)-2].Number)
	for _, place := range []string{dir, before} {
		if err := os.Rename(last, last+".away"); err != nil { // the run before has yet to write it
			t.Fatal(err)
		}
		s, err := Resumed(t.Context(), place)
		if err != nil || s.Resume != before {
			t.Fatalf("the run goes on from %s, %v, want %s", s.Resume, err, before)
		}
		if err := os.Rename(last+".away", last); err != nil {
			t.Fatal(err)
		}
		first := 0
		s.Options.Epochs, s.Keep = 4, 100
		if _, err := Local(t.Context(), "r", s, NodeConfig{untested: true, Progress: func(e Event) {
			if e.Epoch != nil && first == 0 {
				first = e.Epoch.Epoch
			}
		}}); err != nil {
			t.Fatal(err)
		}
		want := all[len(all)-1]
		if place == before {
			want = all[len(all)-2]
		}
		if first != want.Epochs+1 {
			t.Errorf("from %s, the first epoch is %d, want %d", place, first, want.Epochs+1)
		}
		if now := manifests(t, dir); now[len(now)-1].Resumed.From != want.Number {
			t.Errorf("from %s, the run says that it resumed %d, want %d", place, now[len(now)-1].Resumed.From, want.Number)
		}
	}
}

// oneOfTwo is a session of which only the node's number is asked for.
type oneOfTwo struct {
	coord.Session
	id godwit.NodeID
}

func (s oneOfTwo) Self() godwit.NodeID { return s.id }

// What the leader says of a run may be longer than a message of the coordinator.
func TestWhatTheLeaderSaysMayBeLong(t *testing.T) {
	x := traintest.NewExchange(2)
	for _, size := range []int{0, 1, coord.MaxPayload - 1, coord.MaxPayload, 3*coord.MaxPayload + 5} {
		want, err := json.Marshal(strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		var nodes sync.WaitGroup
		for i := range 2 {
			p := newPart(&Spec{}, &NodeConfig{}, "r", time.Time{}, nil, oneOfTwo{id: godwit.NodeID(i)})
			p.leader = 1
			p.env = train.Env{Node: i, Nodes: 2, Exchange: func(ctx context.Context, name string, b []byte) ([][]byte, error) {
				if len(b) > coord.MaxPayload {
					return nil, fmt.Errorf("%d bytes", len(b))
				}
				return x.Of(i)(ctx, name, b)
			}}
			nodes.Go(func() {
				var mine []byte
				if i == 1 {
					mine = want
				}
				if got, err := p.fromLeader(t.Context(), "what", mine); err != nil || string(got) != string(want) {
					t.Errorf("node %d: of %d bytes %d came: %v", i, len(want), len(got), err)
				}
			})
		}
		nodes.Wait()
	}
}

// A checkpoint of which one node finds that its rows are damaged is so at all nodes: nobody takes that node for lost.
func TestAllNodesHearThatACheckpointIsDamaged(t *testing.T) {
	for finds := range 2 {
		dir := filepath.Join(t.TempDir(), "runs")
		spec := tiny(2)
		spec.Policy = "static"
		local(t, spec, dir, NodeConfig{untested: true})
		all := manifests(t, dir)
		last := all[len(all)-1].Number
		if err := flip(filepath.Join(dir, fmt.Sprintf("checkpoint-%010d.*.%d.rows", last, finds))); err != nil {
			t.Fatal(err)
		}
		s, err := Resumed(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s.Options.Epochs++
		at, ctx := newMemory(t, 2), timeout(t)
		joined := make(chan error, 1)
		go func() { joined <- second(Join(ctx, Joiner{Run: "r", Coordinator: at})) }()
		for who, err := range map[string]error{"the leader": second(Lead(ctx, Leader{Spec: s, Run: "r", Coordinator: at})), "the other": <-joined} {
			if err == nil || errors.Is(err, godwit.ErrPeerLost) || errors.Is(err, coord.ErrFailed) || !strings.Contains(err.Error(), fmt.Sprintf(".%d.rows", finds)) {
				t.Errorf("of what node %d finds, %s says: %v", finds, who, err)
			}
		}
	}
}

func TestWhatOneNodeCannotRestoreIsTheErrorOfAll(t *testing.T) {
	x, damage := traintest.NewExchange(2), errors.New("its checksum is wrong")
	for _, found := range [][2]error{{nil, nil}, {damage, nil}, {nil, damage}, {damage, damage}} {
		var nodes sync.WaitGroup
		for i := range 2 {
			p := &part{session: twoMembers{}, env: train.Env{Node: i, Nodes: 2, Exchange: x.Of(i)}}
			nodes.Go(func() {
				err := p.allRestored(t.Context(), found[i])
				if fails := found[0] != nil || found[1] != nil; errors.Is(err, errNotRestored) != fails || fails && !strings.Contains(err.Error(), damage.Error()) || !fails && err != nil {
					t.Errorf("nodes found %v; node %d says %v", found, i, err)
				}
			})
		}
		nodes.Wait()
	}
}
