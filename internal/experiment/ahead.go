package experiment

import (
	"context"
	"errors"
	"slices"

	"github.com/godwit-ps/godwit"
)

// An ahead worker is a program that hides the latency of a classic server by hand: it
// fetches what the next step reads while this one computes, and lets the writes of a
// step arrive during the next one. So a step lacks the worker's own last writes. It knows
// the next step from what the program announces; samples are drawn when they are pulled,
// and so are not fetched ahead.
type ahead struct {
	inner
	evaluating *bool // evaluating is no part of the program

	announced map[godwit.Clock][]godwit.Key // of the steps to come
	keys      []godwit.Key                  // being fetched for the clock at
	vals      []float32
	at        godwit.Clock
	fetch     godwit.Handle
	fetching  bool
	pushed    godwit.Handle // the writes of the step before
}

// Intent remembers what a step will read.
func (a *ahead) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	if end == start+1 && start > a.Clock() {
		if a.announced == nil {
			a.announced = map[godwit.Clock][]godwit.Key{}
		}
		a.announced[start] = slices.Clone(keys)
	}
	return a.Worker.Intent(keys, start, end)
}

// Pull takes what was fetched, if that is it, and begins to fetch for the next step.
func (a *ahead) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	if *a.evaluating {
		return a.Worker.Pull(ctx, keys, dst)
	}
	if err := a.take(ctx, keys, dst); err != nil {
		return err
	}
	next := a.Clock() + 1
	if a.keys = a.announced[next]; len(a.keys) == 0 {
		return nil
	}
	delete(a.announced, next)
	n, err := a.Model().Floats(a.keys)
	if err != nil {
		return err
	}
	a.vals = slices.Grow(a.vals[:0], n)[:n]
	if a.fetch, err = a.Worker.PullAsync(ctx, a.keys, a.vals); err == nil {
		a.at, a.fetching = next, true
	}
	return err
}

func (a *ahead) take(ctx context.Context, keys []godwit.Key, dst []float32) error {
	if !a.fetching {
		return a.Worker.Pull(ctx, keys, dst)
	}
	a.fetching = false
	if err := a.Worker.Wait(ctx, a.fetch); err != nil {
		return err
	}
	if a.at != a.Clock() || !slices.Equal(a.keys, keys) {
		return a.Worker.Pull(ctx, keys, dst)
	}
	copy(dst, a.vals)
	return nil
}

// Push begins the writes of a step and waits for those of the one before.
func (a *ahead) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	h, err := a.Worker.PushAsync(ctx, keys, push)
	err = errors.Join(err, a.arrived(ctx))
	a.pushed = h
	return err
}

func (a *ahead) arrived(ctx context.Context) error {
	h := a.pushed
	a.pushed = 0
	return a.Worker.Wait(ctx, h)
}

// SyncAll also waits for the writes that were let go.
func (a *ahead) SyncAll(ctx context.Context) error {
	return errors.Join(a.arrived(ctx), a.Worker.SyncAll(ctx))
}

// WaitSync also waits for the writes that were let go.
func (a *ahead) WaitSync(ctx context.Context) error {
	return errors.Join(a.arrived(ctx), a.Worker.WaitSync(ctx))
}
