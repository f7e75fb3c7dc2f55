package job

import (
	"context"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
)

// A stuckStore does not answer when something is to be done with an object of some name, until the context of the call ends.
type stuckStore struct {
	checkpoint.Store
	at func(what, name string) bool
}

func (s stuckStore) wait(ctx context.Context, what, name string) error {
	if !s.at(what, name) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

type stuckWriter struct {
	io.Writer
	wait func() error
}

func (w stuckWriter) Write(b []byte) (int, error) {
	if err := w.wait(); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

func (s stuckStore) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := s.wait(ctx, "begin", name); err != nil {
		return err
	}
	return s.Store.Create(ctx, name, func(w io.Writer) error {
		if err := write(stuckWriter{w, func() error { return s.wait(ctx, "write", name) }}); err != nil {
			return err
		}
		return s.wait(ctx, "end", name)
	})
}

func (s stuckStore) Size(ctx context.Context, name string) (int64, error) {
	if err := s.wait(ctx, "size", name); err != nil {
		return 0, err
	}
	return s.Store.Size(ctx, name)
}

func (s stuckStore) List(ctx context.Context, prefix string) ([]checkpoint.Object, error) {
	if err := s.wait(ctx, "list", prefix); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s stuckStore) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	if err := s.wait(ctx, "read", name); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, name, off, n)
}

// stuckAt says where stores at stuck:// do not answer.
var stuckAt func(what, name string) bool

func init() {
	checkpoint.RegisterScheme("stuck", func(_ context.Context, u *url.URL) (checkpoint.Store, error) {
		f, err := checkpoint.OpenFolder(u.Path)
		return stuckStore{f, func(what, name string) bool { return stuckAt(what, name) }}, err
	})
}

// A store that does not answer costs checkpoints, and says so, and training goes on. What was written of them is removed, as the store may be full,
// unless the manifest was given up: it may be there all the same.
func TestAStoreThatDoesNotAnswerIsGivenUp(t *testing.T) {
	for _, stuck := range []string{"begin .1.rows", "write .1.rows", "end .1.rows", "end .0.0.section", "end .jsonl", "size .0.rows"} {
		what, suffix, _ := strings.Cut(stuck, " ")
		t.Run(stuck, func(t *testing.T) {
			stuckAt = func(w, name string) bool { return w == what && strings.HasSuffix(name, suffix) }
			spec := tiny(2)
			spec.Options.Epochs = 1
			dir := filepath.Join(t.TempDir(), "runs")
			spec.Checkpoint = "stuck://" + dir
			var failed []string
			if _, err := Local(timeout(t), "r", spec, NodeConfig{untested: true, storePatience: 20 * time.Millisecond, Progress: func(e Event) {
				if e.Checkpoint != nil {
					failed = append(failed, e.Checkpoint.Error)
				}
			}}); err != nil {
				t.Fatal(err)
			}
			if len(failed) == 0 || !strings.Contains(failed[0], "runs has not answered for 20ms") {
				t.Errorf("the checkpoints failed with %q", failed)
			}
			committing := what == "size" || suffix == ".jsonl"
			if left, err := filepath.Glob(filepath.Join(dir, "*checkpoint-*")); err != nil || len(left) > 0 != committing {
				t.Errorf("what is left: %q, %v", left, err)
			}
		})
	}
}

// Time runs only while the store has something to do.
func TestAWriterThatTakesItsTimeIsNotGivenUp(t *testing.T) {
	f, err := checkpoint.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := checkpoint.Patient(f, checkpoint.Patience)
		if err := s.Create(t.Context(), "checkpoint-0000000001.jsonl", func(w io.Writer) error {
			time.Sleep(2 * checkpoint.Patience)
			_, err := w.Write([]byte("rows"))
			time.Sleep(2 * checkpoint.Patience)
			return err
		}); err != nil {
			t.Error(err)
		}
		stuck := checkpoint.Patient(stuckStore{f, func(what, _ string) bool { return what == "end" }}, checkpoint.Patience)
		if err := stuck.Create(t.Context(), "checkpoint-0000000002.jsonl", func(io.Writer) error { return nil }); err == nil || !strings.Contains(err.Error(), "5m0s") {
			t.Errorf("a store that does not answer: %v", err)
		}
	})
}

func TestWhoTrainingWaitsForIsNamed(t *testing.T) {
	var said string
	p := newPart(&Spec{Checkpoint: "s3://models/kge"}, &NodeConfig{Progress: func(e Event) { said = e.Warning }}, "r", time.Now(), nil, nil)
	for want, late := range map[string][]int{"node 3 has not": {3}, "nodes 0, 2 have not": {0, 2}, "the leader has not": nil} {
		p.waiting(7, late, 12*time.Second)
		for _, w := range []string{want, "checkpoint 7 at s3://models/kge", "12s"} {
			if !strings.Contains(said, w) {
				t.Errorf("it says %q, want %q in it", said, w)
			}
		}
	}
}

// Behind training, a store that does not answer is given up too: the last model is there for the best one.
func TestAStoreThatIsReadAtTheEndIsGivenUp(t *testing.T) {
	f, err := checkpoint.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stuckAt = func(string, string) bool { return true }
	stuck := stuckStore{f, stuckAt}
	place := "stuck://" + t.TempDir()
	var said []string
	cfg := &NodeConfig{saver: &saver{store: stuck}, storePatience: 20 * time.Millisecond, Progress: warnings(&said, func(Event) {})}
	p := newPart(&Spec{Checkpoint: place}, cfg, "r", time.Now(), nil, nil)
	if err := p.findBest(timeout(t), &train.Report{Epochs: 3, Evaluated: []int{1, 2, 3}}); err != nil || p.best != 0 {
		t.Errorf("the best checkpoint is %d, %v", p.best, err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "not the best") || !strings.Contains(said[0], "has not answered for 20ms") {
		t.Errorf("warnings: %q", said)
	}
	p.best = 1
	if err := p.takeBest(timeout(t)); err == nil || !strings.Contains(err.Error(), "has not answered for 20ms") {
		t.Errorf("taking a model from a store that does not answer: %v", err)
	}
}

// A place that does not answer when the lock is given back does not hold up the end of a process whose time is over.
func TestTheLockIsNotWaitedForWhenTheTimeIsOver(t *testing.T) {
	f, err := checkpoint.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var stuck atomic.Bool
		lock, err := checkpoint.Acquire(t.Context(), stuckStore{f, func(string, string) bool { return stuck.Load() }}, checkpoint.Holder{})
		if err != nil {
			t.Fatal(err)
		}
		stuck.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begin := time.Now()
		(&saver{lock: lock}).close(ctx, nil, context.Canceled)
		if d := time.Since(begin); d != 3*time.Second+releaseWithin {
			t.Errorf("it took %v", d)
		}
		time.Sleep(time.Minute) // it ends by itself
	})
}

// A part of a checkpoint is one stream, which may be long: the time is that of each read.
func TestAReaderThatTakesItsTimeIsNotGivenUp(t *testing.T) {
	f, err := checkpoint.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const name = "checkpoint-0000000001.jsonl"
	if err := f.Create(t.Context(), name, func(w io.Writer) error { _, err := io.WriteString(w, "rows"); return err }); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := slowStore{f, checkpoint.Patience * 3 / 4}
		r, err := checkpoint.Patient(slow, checkpoint.Patience).Read(t.Context(), name, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for range 4 {
			if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * checkpoint.Patience)
		}
		slow.takes = 2 * checkpoint.Patience
		if r, err = checkpoint.Patient(slow, checkpoint.Patience).Read(t.Context(), name, 0, 4); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "5m0s") {
			t.Errorf("a read that is not answered: %v", err)
		}
	})
}

// A slowStore takes some time for each read.
type slowStore struct {
	checkpoint.Store
	takes time.Duration
}

func (s slowStore) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	r, err := s.Store.Read(ctx, name, off, n)
	return slowReader{r, ctx, s.takes}, err
}

type slowReader struct {
	io.ReadCloser
	ctx   context.Context
	takes time.Duration
}

func (r slowReader) Read(b []byte) (int, error) {
	select {
	case <-time.After(r.takes):
		return r.ReadCloser.Read(b)
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
