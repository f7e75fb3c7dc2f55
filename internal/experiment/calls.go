package experiment

import (
	"context"
	"slices"

	"github.com/godwit-ps/godwit"
)

// Calls say how a training program accesses the server.
type Calls string

const (
	// Batched are the calls of Godwit's tasks: all keys of a step at once.
	Batched Calls = "batched"
	// Single are those of the programs for Lapse, NuPS and AdaPM: one key a
	// call, and one example a step.
	Single Calls = "single"
)

// AllCalls lists both.
func AllCalls() []Calls { return []Calls{Batched, Single} }

// A single worker reads and writes one key a call. A read waits for its value
// before the next one begins, as a program does that reads where it needs the
// value. Writes are begun one after the other, and a step ends when they have
// arrived.
type single struct {
	inner
	evaluating *bool // evaluating is no part of the program
}

func (s single) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	if *s.evaluating {
		return s.Worker.Pull(ctx, keys, dst)
	}
	return s.each(keys, dst, func(key []godwit.Key, dst []float32) error { return s.Worker.Pull(ctx, key, dst) })
}

func (s single) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	n := 0
	if len(keys) > 0 {
		n = len(dst) / len(keys) // all are of one table
	}
	for i := range keys {
		if err := s.Worker.PullSample(ctx, id, keys[i:i+1], dst[i*n:(i+1)*n]); err != nil {
			return err
		}
	}
	return nil
}

func (s single) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	begun := make([]godwit.Handle, 0, len(keys))
	err := s.each(keys, push, func(key []godwit.Key, push []float32) error {
		h, err := s.Worker.PushAsync(ctx, key, push)
		if h != 0 {
			begun = append(begun, h)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.Worker.Wait(ctx, begun...)
}

// A synced worker tells when it heard that all updates were visible.
type synced struct {
	inner
	d *recorder
}

func (s synced) SyncAll(ctx context.Context) error {
	err := s.Worker.SyncAll(ctx)
	s.d.synced = s.d.c.Now()
	return err
}

// An inner worker is one within another, which can be seeded if it can.
type inner struct{ godwit.Worker }

// SeedSample implements [godwit.Seeder].
func (w inner) SeedSample(sampler int, seed1, seed2 uint64) {
	if s, ok := w.Worker.(godwit.Seeder); ok {
		s.SeedSample(sampler, seed1, seed2)
	}
}

// callers are workers that call as the program is to.
func (d *recorder) callers(ws []godwit.Worker, evaluating *bool) []godwit.Worker {
	ws = slices.Clone(ws)
	for i, w := range ws {
		ws[i] = synced{inner{w}, d}
		switch {
		case d.program.calls == Single:
			ws[i] = single{inner{ws[i]}, evaluating}
		case d.program.ahead:
			ws[i] = &ahead{inner: inner{ws[i]}, evaluating: evaluating}
		}
	}
	return ws
}

// each does something with each key and its values.
func (s single) each(keys []godwit.Key, vals []float32, do func([]godwit.Key, []float32) error) error {
	m, off := s.Model(), 0
	for i, k := range keys {
		n := m.Dim(k)
		if err := do(keys[i:i+1], vals[off:off+n]); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// PullAsync is a Pull, so that no program escapes its calls.
func (s single) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	return 0, s.Pull(ctx, keys, dst)
}

// PushAsync is a Push.
func (s single) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	return 0, s.Push(ctx, keys, push)
}
