package job

import (
	"context"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
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

// A store that does not answer costs checkpoints, and says so, and training goes on.
func TestAStoreThatDoesNotAnswerIsGivenUp(t *testing.T) {
	var at func(what, name string) bool
	checkpoint.RegisterScheme("stuck", func(_ context.Context, u *url.URL) (checkpoint.Store, error) {
		f, err := checkpoint.OpenFolder(u.Path)
		return stuckStore{f, func(what, name string) bool { return at(what, name) }}, err
	})
	for _, stuck := range []string{"begin .1.rows", "write .1.rows", "end .1.rows", "end .0.0.section", "end .jsonl", "size .0.rows"} {
		what, suffix, _ := strings.Cut(stuck, " ")
		t.Run(stuck, func(t *testing.T) {
			at = func(w, name string) bool { return w == what && strings.HasSuffix(name, suffix) }
			spec := tiny(2)
			spec.Options.Epochs = 1
			spec.Checkpoint = "stuck://" + filepath.Join(t.TempDir(), "runs")
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
		s := patientStore{f, storePatience}
		if err := s.Create(t.Context(), "checkpoint-0000000001.jsonl", func(w io.Writer) error {
			time.Sleep(2 * storePatience)
			_, err := w.Write([]byte("rows"))
			time.Sleep(2 * storePatience)
			return err
		}); err != nil {
			t.Error(err)
		}
		stuck := patientStore{stuckStore{f, func(what, _ string) bool { return what == "end" }}, storePatience}
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
