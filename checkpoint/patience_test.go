package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A silent store does not answer until the context of a call ends.
type silent struct{ Store }

func (silent) String() string { return "silent://bucket" }

func (silent) List(ctx context.Context, _ string) ([]Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Size(ctx context.Context, _ string) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (silent) Read(ctx context.Context, _ string, _, _ int64) (io.ReadCloser, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Put(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

func init() {
	RegisterScheme("silent", func(context.Context, *url.URL) (Store, error) { return silent{}, nil })
}

// Runs that begin, and commands that look at checkpoints, are told of a bucket that does not answer.
func TestAPlaceThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	for what, do := range map[string]func(ctx context.Context, s Store) error{
		"the lock":   func(ctx context.Context, s Store) error { _, err := Acquire(ctx, s, one); return err },
		"a list":     func(ctx context.Context, s Store) error { _, err := Manifests(ctx, s); return err },
		"a put":      func(ctx context.Context, s Store) error { return s.Put(ctx, "name", nil) },
		"the last":   func(ctx context.Context, s Store) error { _, err := Open(ctx, s, 0); return err },
		"the second": func(ctx context.Context, s Store) error { _, err := Open(ctx, s, 2); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*Patience)
			defer cancel()
			s, err := OpenStore(ctx, "silent://bucket/runs")
			if err != nil {
				t.Fatal(err)
			}
			if err := do(ctx, s); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "silent://bucket has not answered for 5m0s") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

func TestTheLastLimitOfAPatientStoreCounts(t *testing.T) {
	for _, limit := range []time.Duration{Patience / 5, 2 * Patience} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := Patient(Patient(silent{}, Patience), limit).Size(t.Context(), "name")
			if took := time.Since(began); err == nil || took != limit || !strings.Contains(err.Error(), limit.String()) {
				t.Errorf("with a limit of %v: %v after %v", limit, err, took)
			}
		})
	}
}

// A hung store is one that heeds no context, as the folder of a file system that does not answer: it goes on when hung is closed.
type hung struct {
	Store
	at   string
	hung chan struct{}
}

func (s hung) wait(what string) {
	if s.at == what {
		<-s.hung
	}
}

type hungStream struct {
	io.Writer
	io.ReadCloser
	s hung
}

func (h hungStream) Write(b []byte) (int, error) { h.s.wait("write"); return h.Writer.Write(b) }
func (h hungStream) Read(b []byte) (int, error)  { h.s.wait("read"); return h.ReadCloser.Read(b) }

func (s hung) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	s.wait("begin")
	err := s.Store.Create(ctx, name, func(w io.Writer) error { return write(hungStream{Writer: w, s: s}) })
	s.wait("end")
	return err
}

func (s hung) Size(ctx context.Context, name string) (int64, error) {
	s.wait("size")
	return s.Store.Size(ctx, name)
}

func (s hung) Put(ctx context.Context, name string, b []byte) error {
	s.wait("put")
	return s.Store.Put(ctx, name, b)
}

func (s hung) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	s.wait("open")
	r, err := s.Store.Read(ctx, name, off, n)
	return hungStream{ReadCloser: r, s: s}, err
}

// Nobody waits for a store that cannot be interrupted, neither when it takes too long nor when the caller's time is over. The error names store and object, and
// the caller has its memory back.
func TestAStoreThatHeedsNoContextIsNotWaitedForForEver(t *testing.T) {
	const name, object = "checkpoint-0000000001.jsonl", "checkpoint-0000000002.jsonl"
	for _, at := range []string{"begin", "write", "end", "size", "put", "open", "read"} {
		for _, late := range []bool{false, true} {
			dir := t.TempDir()
			f, err := OpenFolder(dir)
			if err == nil {
				err = f.Put(t.Context(), name, []byte("rows"))
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				s := Patient(hung{f, at, free}, Patience)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if !late {
					ctx = t.Context()
				}
				of, began := name, time.Now()
				switch at {
				case "begin", "write", "end":
					of = object
					err = s.Create(ctx, of, func(w io.Writer) error {
						b := []byte("row")
						_, _ = w.Write(b) // it is no matter whether write tells
						b[0] = 'x'
						return nil
					})
				case "size":
					_, err = s.Size(ctx, of)
				case "put":
					err = s.Put(ctx, of, nil)
				default:
					var r io.ReadCloser
					if r, err = s.Read(ctx, of, 0, 4); err == nil {
						_, err = r.Read(make([]byte, 4))
						_ = r.Close()
					}
				}
				took, most, says := time.Since(began), Patience, "has not answered for 5m0s"
				if late {
					most, says = 10*time.Second, "does not answer: "+context.DeadlineExceeded.Error()
				}
				if err == nil || took > most+lastWord || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), of) || !strings.Contains(err.Error(), says) {
					t.Errorf("%s, late %t: %v after %v", at, late, err, took)
				}
				close(free)
				synctest.Wait() // what was given up ends
				if _, err := f.Size(t.Context(), object); err == nil && at != "end" {
					t.Errorf("%s, late %t: there is an object that nobody completed", at, late)
				}
			})
		}
	}
}

// A leaving store is one whose Create ends although a write of it has not ended.
type leaving struct {
	Store
	ended chan struct{}
}

func (leaving) String() string { return "leaving" }

func (s leaving) Write([]byte) (int, error) {
	<-s.ended
	return 0, errors.New("ended")
}

func (s leaving) Create(_ context.Context, _ string, write func(io.Writer) error) error {
	go write(s) //nolint:errcheck // nobody is left to hear of it
	time.Sleep(time.Second)
	return errors.New("left")
}

func TestWhoWritesOnAfterAnErrorIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leaving{ended: make(chan struct{})}
		defer close(s.ended)
		began := time.Now()
		err := Patient(s, Patience).Create(t.Context(), "name", func(w io.Writer) error {
			for range 10 {
				_, _ = w.Write([]byte("block"))
			}
			return nil
		})
		if took := time.Since(began); err == nil || err.Error() != "left" || took != time.Second {
			t.Errorf("%v after %v, want what the store said, when it did", err, took)
		}
	})
}

// A slow store takes a minute for each megabyte, of which it takes and gives as many at once as it is asked to.
type slow struct {
	io.Writer
	io.ReadCloser
}

func wait(bytes int) { time.Sleep(time.Duration(bytes) * time.Minute >> 20) }

func (s slow) Write(b []byte) (int, error) { wait(len(b)); return s.Writer.Write(b) }
func (s slow) Read(b []byte) (int, error)  { wait(len(b)); return s.ReadCloser.Read(b) }

type slowStore struct{ Store }

func (s slowStore) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	return s.Store.Create(ctx, name, func(w io.Writer) error { return write(slow{Writer: w}) })
}

func (s slowStore) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	r, err := s.Store.Read(ctx, name, off, n)
	return slow{ReadCloser: r}, err
}

// A store that goes on is waited for, however large the objects are that are written and read at once, such as sections.
func TestALargeObjectTakesLongerThanPatience(t *testing.T) {
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("section "), 1<<20)
	synctest.Test(t, func(t *testing.T) {
		s := Patient(slowStore{f}, Patience)
		if err := s.Create(t.Context(), "name", func(w io.Writer) error { _, err := w.Write(want); return err }); err != nil {
			t.Fatal(err)
		}
		r, err := s.Read(t.Context(), "name", 0, int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, and equal: %t", err, bytes.Equal(got, want))
		}
	})
}

// A dripping store gives a byte a second, as long as the context of the call goes on.
type dripping struct{ Store }

func (dripping) String() string { return "dripping://bucket" }

func (s dripping) Read(ctx context.Context, _ string, _, _ int64) (io.ReadCloser, error) {
	return drops{ctx}, nil
}

type drops struct{ context.Context }

func (drops) Close() error { return nil }

func (d drops) Read(b []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		b[0] = 'x'
		return 1, nil
	case <-d.Done():
		return 0, d.Err()
	}
}

// A store that goes on, but would take days for an object, is given up, too.
func TestAStoreThatDripsIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := Patient(dripping{}, Patience).Read(t.Context(), "name", 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = io.ReadFull(r, make([]byte, 1<<20))
		if took := time.Since(began); err == nil || took > Patience+lastWord || !strings.Contains(err.Error(), "dripping://bucket: name: the store gave 299 bytes of 1048576 in 5m0s") && !strings.Contains(err.Error(), "300 bytes of") {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// Who gives a call up hears what was not done, and why if anybody said so.
func TestWhatIsInterruptedIsNamed(t *testing.T) {
	why := errors.New("interrupted twice")
	for what, c := range map[string]struct {
		do   func(ctx context.Context, s Store) error
		says string
	}{
		"a put":  {func(ctx context.Context, s Store) error { return s.Put(ctx, "name", nil) }, "writing name to silent://bucket was interrupted"},
		"a list": {func(ctx context.Context, s Store) error { _, err := s.List(ctx, ""); return err }, "listing its objects at silent://bucket was interrupted"},
		"a read": {func(ctx context.Context, s Store) error { _, err := s.Read(ctx, "name", 0, 1); return err }, "reading name from silent://bucket was interrupted"},
		"a size": {func(ctx context.Context, s Store) error { _, err := s.Size(ctx, "name"); return err }, "looking for name at silent://bucket was interrupted"},
	} {
		for _, cause := range []error{nil, why} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				err := c.do(ctx, Patient(silent{}, Patience))
				want := c.says
				if cause != nil {
					want += ": " + cause.Error()
				}
				if err == nil || err.Error() != want || !errors.Is(err, context.Cause(ctx)) {
					t.Errorf("%s that was given up for %v: %v, want %s", what, cause, err, want)
				}
			})
		}
	}
}
