package checkpoint

import (
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
