package job

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// A midway is a task whose run is cut at a step, counted over all workers of this process.
type midway struct {
	task.Settings
	step  int64 // 0: it is not cut
	alone bool  // the one worker waits for the cut, so that it is made exactly behind the step

	steps atomic.Int64
	due   chan struct{} // closed when the cut is wanted, or the run is over
	over  sync.Once     // closes due
	told  chan struct{} // closed when it is known where the workers were
	once  sync.Once

	written chan struct{} // closed when the first checkpoint is complete
	first   sync.Once
}

func newMidway(s task.Settings, step int64, alone bool) *midway {
	return &midway{Settings: s, step: step, alone: alone, due: make(chan struct{}), told: make(chan struct{}), written: make(chan struct{})}
}

// MarshalJSON has the settings as a run writes them.
func (m *midway) MarshalJSON() ([]byte, error) { return json.Marshal(m.Settings) }

func (m *midway) Load(s task.Setup) (task.Task, error) {
	t, err := m.Settings.Load(s)
	return midwayTask{t, m}, err
}

// owner has the leader cut when the step was made, and at no other time but ends of epochs.
func (m *midway) owner(o *cuts.Owner) {
	asked := false
	o.Due = func() (at time.Time) {
		if !asked && m.step > 0 {
			asked = true
			<-m.due
			if m.steps.Load() >= m.step {
				at = time.Now()
			}
		}
		return at
	}
}

type midwayTask struct {
	task.Task
	m *midway
}

func (t midwayTask) Lockstep() bool { return train.InLockstep(t.Task) }

func (t midwayTask) Stages(parts int) int { return train.StagesOf(t.Task, parts) }

func (t midwayTask) Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error) {
	ws := make([]godwit.Worker, len(env.Workers))
	for i, w := range env.Workers {
		ws[i] = &midwayWorker{w.(seededCutter), t.m}
	}
	if tell := env.OnCut; tell != nil {
		env.OnCut = func(n uint64, s *train.State, err error) {
			tell(n, s, err)
			t.m.once.Do(func() { close(t.m.told) })
		}
	}
	if ended := env.EpochEnd; ended != nil {
		env.EpochEnd = func(ctx context.Context, s *train.State) error {
			if s.End != "" {
				t.m.over.Do(func() { close(t.m.due) })
			}
			if t.m.step > 0 && t.m.steps.Load() >= t.m.step && (t.m.alone || !train.EvenSteps(t)) { // others may wait in a step for this node
				for _, w := range ws {
					w.(godwit.Cutter).Rest()
				}
				<-t.m.written // else it might be given up for the end of the epoch
			}
			return ended(ctx, s)
		}
	}
	env.Workers = ws
	return t.Task.Train(ctx, env, o, seen)
}

type seededCutter interface {
	godwit.Cutter
	SeedSample(sampler int, seed1, seed2 uint64)
}

type midwayWorker struct {
	seededCutter
	m *midway
}

func (w *midwayWorker) Advance() godwit.Clock {
	c := w.seededCutter.Advance()
	if w.m.steps.Add(1) == w.m.step {
		w.m.over.Do(func() { close(w.m.due) })
		if w.m.alone {
			w.Rest()
			<-w.m.told
		}
	}
	return c
}

// cutMidway trains with checkpoints in a folder, cut at a step, and returns the result and how many steps were made.
func cutMidway(t *testing.T, spec Spec, dir string, step int64) (*Result, int64) {
	t.Helper()
	m := newMidway(spec.Task, step, spec.Workers*spec.Nodes == 1)
	again := spec
	spec.Task, spec.Checkpoint, spec.Keep = m, dir, 100
	uneven := false
	r, err := Local(timeout(t), "r", spec, NodeConfig{cuts: m.owner, Progress: func(e Event) {
		if e.Checkpoint != nil {
			m.first.Do(func() { close(m.written) })
		}
		if e.Checkpoint != nil && e.Checkpoint.Error != "" {
			if uneven = e.Checkpoint.GivenUp && spec.Task.Name() == "linear"; !uneven {
				t.Error(e.Checkpoint.Error)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if uneven { // it was asked for about the end of an epoch
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		return cutMidway(t, again, dir, max(1, step*3/4))
	}
	return r, m.steps.Load()
}

// at returns the state in a checkpoint.
func stateAt(t *testing.T, place string) *train.State {
	t.Helper()
	c, err := checkpoint.OpenPlace(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRun(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// last returns the digest of the last checkpoint of a folder.
func last(t *testing.T, dir string) checkpoint.Digest {
	t.Helper()
	c, err := checkpoint.OpenPlace(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

// A run of one node with one worker that is resumed within an epoch is the run that was not interrupted, bit by bit.
func TestARunResumedWithinAnEpochIsTheSameRun(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, spec := range reusable() {
		if racing.Enabled && name != "complex" && name != "blocks" && name != "sketch" {
			continue // one worker at one node has few goroutines that could race
		}
		t.Run(name, func(t *testing.T) {
			spec.Workers, spec.Options.Epochs = 1, 3
			whole, cut, resumed := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")
			want, steps := cutMidway(t, spec, whole, 0)
			step := 1 + rng.Int64N(steps-1)
			same, _ := cutMidway(t, spec, cut, step)
			state := stateAt(t, numberedPlace(cut, 1))
			about := fmt.Sprintf("seed %d: cut at %d of %d steps, at %+v", seed, step, steps, state.Position)
			again, err := Resumed(t.Context(), numberedPlace(cut, 1))
			if err != nil {
				t.Fatal(about, err)
			}
			got, more := cutMidway(t, again, resumed, 0)
			if digest := last(t, whole); last(t, cut) != digest || last(t, resumed) != digest {
				t.Errorf("%s: the digests of the model, of the run that was cut and of the resumed one are %v, %v and %v", about, digest, last(t, cut), last(t, resumed))
			}
			if fmt.Sprint(got.Test) != fmt.Sprint(want.Test) || fmt.Sprint(same.Test) != fmt.Sprint(want.Test) {
				t.Errorf("%s: the tests are %v, %v and %v", about, want.Test, same.Test, got.Test)
			}
			if step+more != steps && name != "sketch" { // what it had not pushed, it counts again
				t.Errorf("%s: %d more steps", about, more)
			}
			for i, l := range stateAt(t, whole).Losses {
				if l.Examples != stateAt(t, resumed).Losses[i].Examples {
					t.Errorf("%s: epoch %d has %d examples, want %d", about, i+1, stateAt(t, resumed).Losses[i].Examples, l.Examples)
				}
			}
		})
	}
}

// Each example is trained once in each epoch, however many nodes and workers go on.
func TestOthersGoOnWithinAnEpoch(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []string{"complex", "mf, biased true", "mf, blocks", "blocks", "lda", "sketch"} {
		t.Run(name, func(t *testing.T) {
			spec := reusable()[name]
			spec.Options.Epochs = 2
			examples := func(dir string) (ns []int64) {
				for _, l := range stateAt(t, dir).Losses {
					ns = append(ns, l.Examples)
				}
				return ns
			}
			dir := filepath.Join(t.TempDir(), "a")
			_, steps := cutMidway(t, spec, dir, 0)
			want := examples(dir)
			spec.Nodes, spec.Workers = 1+rng.IntN(3), 1+rng.IntN(2)
			from, about := filepath.Join(t.TempDir(), "b"), ""
			cutMidway(t, spec, from, 1+rng.Int64N(steps*3/4))
			place := numberedPlace(from, 1)
			for i := range 2 {
				again, err := Resumed(t.Context(), place)
				if err != nil {
					t.Fatal(seed, about, err)
				}
				about += fmt.Sprintf("; %d nodes of %d workers, cut at %+v", spec.Nodes, spec.Workers, stateAt(t, place).Position)
				again.Nodes, again.Workers = 1+rng.IntN(3), 1+rng.IntN(3)
				to := filepath.Join(t.TempDir(), fmt.Sprint(i))
				cutMidway(t, again, to, 1+rng.Int64N(steps/8+1))
				if got := examples(to); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("seed %d%s; then %d nodes of %d: the epochs have %v examples, want %v", seed, about, again.Nodes, again.Workers, got, want)
				}
				spec, place = again, numberedPlace(to, 1)
			}
		})
	}
}

// All nodes of a run that goes on within an epoch, and is to train no more, end it: none waits for a checkpoint that others do not make.
func TestNodesThatHaveNothingToTrainBehindTheMiddleOfAnEpochEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	cutMidway(t, tiny(1), dir, 60)
	spec, err := Resumed(t.Context(), dir+"#1")
	if err != nil {
		t.Fatal(err)
	}
	spec.Nodes, spec.Options.Epochs, spec.Checkpoint = 2, 1, dir
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := Local(ctx, "r", spec, NodeConfig{})
	if err != nil || r.Epochs != 1 || r.End != train.AllEpochs {
		t.Errorf("a run that goes on at step 60 with no more epochs: %+v, %v", r, err)
	}
}
