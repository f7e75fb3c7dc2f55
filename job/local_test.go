package job

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// tiny describes a run of a fraction of a second.
func tiny(nodes int) Spec {
	k := task.DefaultKGE()
	k.Graph.Entities, k.Graph.Relations, k.Graph.Triples = 150, 5, 2500
	k.Dim, k.Batch, k.Negatives = 16, 64, 50
	s := Default(k)
	s.Nodes, s.Workers = nodes, 1
	s.Options.Epochs = 3
	return s
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Minute, errors.New("the test took too long"))
	t.Cleanup(cancel)
	return ctx
}

// An album keeps the events of a run.
type album struct {
	mu     sync.Mutex
	events []Event
}

func (a *album) keep(e Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, e)
}

func TestOneNodeTellsWhatHappens(t *testing.T) {
	var a album
	spec := tiny(1)
	spec.Options.EvalEvery = 2
	r, err := Local(timeout(t), "test", spec, NodeConfig{Progress: a.keep})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range a.events {
		switch {
		case e.Start != nil:
			kinds = append(kinds, "start")
		case e.Epoch != nil:
			kinds = append(kinds, "epoch")
		case e.Evaluation != nil:
			kinds = append(kinds, "evaluation")
		case e.Result != nil:
			kinds = append(kinds, "result")
		}
		if e.Run == "" || e.Policy != "adaptive" {
			t.Errorf("an event of run %q under policy %q", e.Run, e.Policy)
		}
	}
	want := "start evaluation epoch epoch evaluation epoch evaluation result"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("it told of %s, want %s", got, want)
	}
	if r.Epochs != 3 || r.End != train.AllEpochs || r.NoMessage != 1 || r.Stats.Accesses() == 0 || r.Workers != 1 || r.Nodes != 1 {
		t.Errorf("the result is %+v", r)
	}
	if !(r.Test.At("MRR") >= 2*r.Untrained.At("MRR")) {
		t.Errorf("MRR is %.3f after training and was %.3f before", r.Test.At("MRR"), r.Untrained.At("MRR"))
	}
}

// An epoch of the tiny graph takes few milliseconds and so few sync rounds that
// copies lag far behind: that several nodes train as well as one is for larger
// graphs to show.
func TestEveryPolicyTrains(t *testing.T) {
	for _, name := range placement.Names() {
		t.Run(name, func(t *testing.T) {
			spec := tiny(3)
			spec.Policy, spec.Options.Epochs = name, 40
			if racing.Enabled {
				spec.Options.Epochs = 3 // the same code as often as matters; too little to learn much
			}
			r, err := Local(timeout(t), "test", spec, NodeConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Policy != name || r.Nodes != 3 || r.Workers != 3 || r.Stats.Accesses() == 0 {
				t.Errorf("the result is %+v", r)
			}
			if !racing.Enabled && !(r.Test.At("MRR") >= 2*r.Untrained.At("MRR")) {
				t.Errorf("MRR is %.3f after training and was %.3f before", r.Test.At("MRR"), r.Untrained.At("MRR"))
			}
			if r.Stats.SentBytes == 0 || r.NoMessage < 0 || r.NoMessage > 1 {
				t.Errorf("it sent %d bytes, and %v of accesses needed no message", r.Stats.SentBytes, r.NoMessage)
			}
			if all := 3 * r.TrainSeconds; r.Waiting < 0 || r.Waiting == 0 && name == "static" || r.Waiting > 1 || math.Abs(r.Waiting*all-r.Stats.Waited.Seconds()) > 1e-9 {
				t.Errorf("workers waited for %v of %v s, and for %v in all", r.Waiting, all, r.Stats.Waited)
			}
		})
	}
}

// What judging costs is no part of the stats of training: nodes pull every
// entity for it, most of them from elsewhere.
func TestStatsAreThoseOfTraining(t *testing.T) {
	var sums [2]uint64
	for i, every := range []int{0, 1} {
		spec := tiny(2)
		spec.Policy, spec.Options.EvalEvery, spec.Untrained = "static", every, every == 1
		r, err := Local(timeout(t), "test", spec, NodeConfig{})
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = r.Stats.Accesses()
	}
	if sums[0] != sums[1] || sums[0] == 0 {
		t.Errorf("%d accesses where the model is judged once, %d where it is four times", sums[0], sums[1])
	}
}

func TestAStopKeepsTheModel(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		dir := filepath.Join(t.TempDir(), "out")
		stop := make(chan struct{})
		var once sync.Once
		spec := tiny(nodes)
		spec.Options.Epochs = 100_000
		r, err := Local(timeout(t), "test", spec, NodeConfig{Stop: stop, Export: dir, Progress: func(e Event) {
			if e.Epoch != nil {
				once.Do(func() { close(stop) })
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Interrupted() || r.Reason == "" || !(r.Test.At("MRR") > 0) || r.Exported != dir {
			t.Errorf("%d nodes: the result is %+v", nodes, r)
		}
		if _, err := os.Stat(filepath.Join(dir, "entities.npy")); err != nil {
			t.Error(err)
		}
	}
}

// An end that is asked for while the data are read comes before training: nothing is exported, which would replace the model of an earlier run.
func TestAStopBeforeTrainingLeavesAnEarlierModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := Local(timeout(t), "test", tiny(1), NodeConfig{Export: dir}); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(dir, "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	for _, nodes := range []int{1, 3} {
		if r, err := Local(timeout(t), "test", tiny(nodes), NodeConfig{Stop: stop, Export: dir}); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%d nodes: got %v, %v, want %v", nodes, r, err, ErrInterrupted)
		}
	}
	if is, err := os.ReadFile(filepath.Join(dir, "model.json")); err != nil || string(is) != string(was) {
		t.Errorf("the export was changed: %v", err)
	}
}

// endless are settings whose data come from a pipe to which nobody writes.
type endless struct {
	*task.KGE
	begun, written chan struct{}
}

func (e endless) Load(task.Setup) (task.Task, error) {
	close(e.begun)
	<-e.written
	return nil, io.ErrUnexpectedEOF
}

func TestAnInterruptEndsARunWhoseDataDoNotCome(t *testing.T) {
	ctx, cancel := context.WithCancelCause(timeout(t))
	defer cancel(nil)
	for _, want := range []error{ErrInterrupted, io.ErrClosedPipe} {
		data := endless{task.DefaultKGE(), make(chan struct{}), make(chan struct{})}
		stop := make(chan struct{})
		go func() {
			<-data.begun
			if want == ErrInterrupted {
				close(stop)
			} else {
				cancel(want)
			}
		}()
		r, err := Local(ctx, "test", Default(data), NodeConfig{Stop: stop})
		close(data.written)
		if !errors.Is(err, want) {
			t.Errorf("got %v, %v, want %v", r, err, want)
		}
	}
}

func TestAnEndOfTheContextEndsAllNodes(t *testing.T) {
	before := runtime.NumGoroutine()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	spec := tiny(3)
	spec.Options.Epochs = 100_000
	_, err := Local(ctx, "test", spec, NodeConfig{Progress: func(e Event) {
		if e.Epoch != nil {
			cancel(cause)
		}
	}})
	if err == nil {
		t.Fatal("no error")
	}
	for deadline := time.Now().Add(4 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestAFailedExportFailsTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Local(timeout(t), "test", tiny(3), NodeConfig{Export: file})
	if err == nil || !strings.Contains(err.Error(), "export") || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v, want one about the export to %s", err, file)
	}
}

// Workers have different numbers of steps, and read at most so many ahead of
// each other; no epoch waits for who has ended it.
func TestRunsOfBoundedStalenessTrain(t *testing.T) {
	blocked := uint64(0)
	for _, s := range []godwit.Bound{godwit.BulkSynchronous, godwit.Within(2)} {
		for _, policy := range []string{"adaptive", "stale"} {
			spec := tiny(2)
			spec.Workers, spec.Staleness, spec.Policy = 2, s, policy
			spec.Options.Epochs, spec.Options.EvalEvery = 4, 2
			r, err := Local(timeout(t), "test", spec, NodeConfig{})
			if err != nil {
				t.Fatalf("staleness %v, %s: %v", s, policy, err)
			}
			if r.Epochs != 4 || !(r.Test.At("MRR") >= 2*r.Untrained.At("MRR")) {
				t.Errorf("staleness %v, %s: after %d epochs, MRR is %.3f, it was %.3f", s, policy, r.Epochs, r.Test.At("MRR"), r.Untrained.At("MRR"))
			}
			blocked += r.Stats.Blocked
		}
	}
	if blocked == 0 {
		t.Error("no read waited: the test is vacuous")
	}
}
