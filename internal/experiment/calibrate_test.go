package experiment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sim"
)

// What a counter takes off a measured step is what the simulator charges for the same calls.
func TestACounterCountsWhatIsCharged(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 3})
	if err != nil {
		t.Fatal(err)
	}
	keys, vals := []godwit.Key{1, 2, 3, 4}, make([]float32, 12)
	begun := func(ctx context.Context, w godwit.Worker, h godwit.Handle, err error) error {
		return errors.Join(err, w.Wait(ctx, h))
	}
	for what, call := range map[string]func(context.Context, godwit.Worker) error{
		"Pull": func(ctx context.Context, w godwit.Worker) error { return w.Pull(ctx, keys, vals) },
		"PullAsync": func(ctx context.Context, w godwit.Worker) error {
			h, err := w.PullAsync(ctx, keys, vals)
			return begun(ctx, w, h, err)
		},
		"Push": func(ctx context.Context, w godwit.Worker) error { return w.Push(ctx, keys, vals) },
		"PushAsync": func(ctx context.Context, w godwit.Worker) error {
			h, err := w.PushAsync(ctx, keys, vals)
			return begun(ctx, w, h, err)
		},
		"Set": func(ctx context.Context, w godwit.Worker) error { return w.Set(ctx, keys, vals) },
		"SetAsync": func(ctx context.Context, w godwit.Worker) error {
			h, err := w.SetAsync(ctx, keys, vals)
			return begun(ctx, w, h, err)
		},
		"Localize": func(ctx context.Context, w godwit.Worker) error { return w.Localize(ctx, keys) },
		"LocalizeAsync": func(ctx context.Context, w godwit.Worker) error {
			h, err := w.LocalizeAsync(ctx, keys)
			return begun(ctx, w, h, err)
		},
	} {
		compute := sim.Compute{Key: 100 * time.Microsecond, Byte: 1000}
		c, err := sim.New(sim.Config{Nodes: 1, Workers: 1, Model: m, Compute: compute})
		if err != nil {
			t.Fatal(err)
		}
		var counted time.Duration
		r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			n := &counter{inner: inner{w}}
			err := call(ctx, n)
			counted = n.cost(&compute)
			return err
		})
		if err != nil || counted == 0 || r.Elapsed != counted {
			t.Errorf("%s is charged %v and counted as %v: %v", what, r.Elapsed, counted, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
