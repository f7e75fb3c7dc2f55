package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// What several nodes use again and again, with pauses that are longer than the window, keeps its copies in between. What only one
// goes on using and changing loses the others'.
func TestCopiesStayBetweenUsesThatAreNotFarApart(t *testing.T) {
	const pause, keys, steps, ahead = 60, 10, 3000, 30 // each step uses 10 keys that the last 59 did not
	c := cluster(t, Config{Nodes: 3, Workers: 1, Seed: 1, Model: model(t, 2*pause*keys, 2), Policy: placement.Adaptive,
		Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 20 * time.Microsecond, Spread: 0.2}})
	batch := func(n, step int) (ks []godwit.Key) {
		for i := range keys {
			ks = append(ks, godwit.Key(step%pause*keys+i))
		}
		if step >= steps && n > 0 {
			ks = []godwit.Key{pause * keys}
		}
		return ks
	}
	var before, after [3]uint64 // copies that were set up
	most := int64(0)
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		n, told := int(w.ID().Node), 0
		for i := range 5 * steps {
			switch i {
			case steps / 2:
				before[n] = c.Node(n).Stats().Copies
			case steps:
				after[n] = c.Node(n).Stats().Copies
				most = max(most, c.Node(n).Stats().Window)
			}
			for ; told < 5*steps && told <= i+ahead; told++ {
				if err := w.Intent(batch(n, told), godwit.Clock(told), godwit.Clock(told+1)); err != nil {
					return err
				}
			}
			v := make([]float32, 2*len(batch(n, i)))
			if err := w.Pull(ctx, batch(n, i), v); err != nil {
				return err
			}
			if err := w.Push(ctx, batch(n, i), slices.Repeat([]float32{1}, len(v))); err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	copies, uses := uint64(0), uint64(3*steps/2*keys)
	for n := range before {
		copies += after[n] - before[n]
	}
	t.Logf("%d copies were set up for %d uses, at windows of %d clocks at most; %d are left", copies, uses, most, r.Sum().Replicas)
	if most >= pause/2 {
		t.Errorf("a window of %d clocks: the test is vacuous", most)
	}
	if copies > uses/20 {
		t.Errorf("%d copies were set up for %d uses", copies, uses)
	}
	if left := r.Sum().Replicas; left > 3*keys {
		t.Errorf("%d copies are left of keys that are not used any more", left)
	}
}

// A copy that stayed between two uses is about as fresh at the second as one that is set up for it, though rounds are rare: it
// lacks what was pushed while it took to come, and not what was pushed in the pause.
func TestACopyThatStayedIsFreshWhenItIsUsed(t *testing.T) {
	const pause, keys, steps, ahead = 60, 10, 3000, 30
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4*pause*keys, 2), Policy: placement.Adaptive,
		Network: Network{Latency: 50 * time.Microsecond},
		Compute: Compute{Step: 20 * time.Microsecond, Spread: 0.2, Frame: 10 * time.Microsecond, Record: 200 * time.Nanosecond}})
	var there []godwit.Key // homed at the writer
	for k := godwit.Key(0); len(there) < pause*keys; k++ {
		if c.Node(0).Home(k) == 1 {
			there = append(there, k)
		}
	}
	batch := func(step int) []godwit.Key { return there[step%pause*keys:][:keys] }
	pushed, age, reads := make(map[godwit.Key]int), 0, 0
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node == 1 { // pushes to all keys, which it announced once and for all, so that they stay there
			if err := w.Intent(there, 0, godwit.Forever); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.ID().Node == 1 {
			ones := make([]float32, 2*len(there))
			for i := range ones {
				ones[i] = 1
			}
			for range steps {
				if err := w.Push(ctx, there, ones); err != nil {
					return err
				}
				for _, k := range there {
					pushed[k]++
				}
				w.Advance()
			}
			return nil
		}
		v := make([]float32, 2*keys)
		for i, told := 0, 0; i < steps; i++ {
			for ; told < steps && told <= i+ahead; told++ {
				if err := w.Intent(batch(told), godwit.Clock(told), godwit.Clock(told+1)); err != nil {
					return err
				}
			}
			if err := w.Pull(ctx, batch(i), v); err != nil {
				return err
			}
			for j, k := range batch(i) {
				if i > steps/2 {
					reads++
					age += pushed[k] - int(v[2*j])
				}
			}
			w.Advance()
		}
		return nil
	})
	s := r.Sum()
	lacks := float64(age) / float64(reads)
	t.Logf("a read lacked %.1f pushes, at windows of %d clocks; %d copies, %d rounds", lacks, s.Window, s.Copies, s.Rounds)
	if s.Copies > 2*pause*keys {
		t.Errorf("%d copies were set up for %d uses: the test is vacuous", s.Copies, steps*keys)
	}
	if lacks > 0.6*pause { // 45 where copies wait for eight rounds
		t.Errorf("a read lacks %.1f pushes of a writer that makes some %d between two uses", lacks, pause)
	}
}
