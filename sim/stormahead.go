package sim

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// This file is what storms do, and judge, under policies that have values fetched ahead of their
// use.

// planned is keys that are used at a clock.
type planned struct {
	at   godwit.Clock
	keys []godwit.Key
}

// step announces keys for as many steps as may be fetched, does something else, and uses those of the next one there.
func (x *stormWorker) step(ctx context.Context) error {
	next := x.w.Clock() + 1
	for len(x.plan) > 0 && x.plan[0].at < next {
		x.plan = x.plan[1:]
	}
	for len(x.plan) < max(1, x.depth) {
		p := planned{next + godwit.Clock(len(x.plan)), x.some()}
		if n := len(x.plan); n > 0 {
			p.at = x.plan[n-1].at + 1
		}
		if err := x.announce(p.keys, p.at, p.at+1); err != nil {
			return err
		}
		x.plan = append(x.plan, p)
	}
	var keys []godwit.Key
	if x.plan[0].at == next {
		keys = x.plan[0].keys
	}
	switch x.rng.IntN(4) {
	case 0:
		if err := x.push(ctx, x.some()); err != nil {
			return err
		}
	case 1:
		if err := x.pull(ctx, x.some()); err != nil {
			return err
		}
	}
	x.advance()
	if err := x.pull(ctx, keys); err != nil {
		return err
	}
	return x.push(ctx, keys)
}

// begins notes the main copies, as they are when a step of the worker begins.
func (x *stormWorker) begins() {
	if !x.ahead {
		return
	}
	now := map[godwit.Key][]float32{}
	for _, k := range x.keys {
		now[k] = x.c.Value(k)
	}
	x.before = append(x.before, now)
	if n := len(x.before) - max(1, x.depth) - 1; n > 0 {
		x.before = x.before[n:]
	}
}

// oldest returns the main copies that a read may be as old as; nil: it may be of any age.
func (x *stormWorker) oldest() map[godwit.Key][]float32 {
	if len(x.before) <= max(1, x.depth) {
		return nil
	}
	return x.before[0]
}

// announce announces keys.
func (x *stormWorker) announce(keys []godwit.Key, start, end godwit.Clock) error {
	x.last = max(x.last, end)
	if end == start+1 {
		x.steps++
	}
	for _, k := range keys {
		if t, _ := x.model.Locate(k); end > start+1 || x.model.Table(t).Staleness != godwit.Eventual {
			x.asked[[2]int{x.node, int(k)}] = true
		}
	}
	return x.w.Intent(keys, start, end)
}

// lateSteps is after how many steps a worker may fetch further ahead than for the next one.
const lateSteps = 16

// recent judges the age of what a worker read: it contains what the main copy had when the step
// before the one of the read began, or as many steps before it as values are fetched ahead. That is not said of replicas, which a node may have of keys that
// were announced for several steps, of samples, and of what it learned to keep (Table.Relaxed).
func (x *stormWorker) recent(k godwit.Key, v []float32, before map[godwit.Key][]float32) error {
	t, _ := x.model.Locate(k)
	had := before[k]
	if had == nil || t == setTable || x.model.Table(t).Relaxed || x.steps >= lateSteps || len(x.samples) > 0 || x.asked[[2]int{x.node, int(k)}] {
		return nil
	}
	for i := range x.config.Nodes * x.config.Workers {
		if v[i] < had[i] {
			return fmt.Errorf("worker %d read key %d as %v in step %d, the main copy was %v when the step %d before began", x.id, k, v, x.w.Clock(), had, max(1, x.depth))
		}
	}
	x.aged++
	return nil
}
