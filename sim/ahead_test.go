package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// fetching is a cluster whose workers fetch ahead before each step, from the third on.
func fetching(t *testing.T, nodes, workers int) *Cluster {
	t.Helper()
	return cluster(t, Config{Nodes: nodes, Workers: workers, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, LongStep: -time.Hour, Watch: true,
		Network: Network{Latency: 200 * time.Microsecond}, Compute: Compute{Step: 5 * time.Millisecond}})
}

// Workers that announce each step while they make the one before, with keys of their own, wait
// for no message from the third step on; and nothing else is asked for.
func TestWhatIsFetchedAheadIsNotWaitedFor(t *testing.T) {
	const steps, keys = 20, 30
	c := fetching(t, 4, 1)
	batch := func(w godwit.Worker, step int) (ks []godwit.Key) {
		for i := range keys {
			ks = append(ks, godwit.Key((step*keys+i)*4+int(w.ID().Node)))
		}
		return ks
	}
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		v := make([]float32, 2*keys)
		for i := range steps {
			if err := w.Intent(batch(w, i+1), godwit.Clock(i+1), godwit.Clock(i+2)); err != nil {
				return err
			}
			if err := w.Pull(ctx, batch(w, i), v); err != nil {
				return err
			}
			if err := w.Push(ctx, batch(w, i), v); err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	s := r.Sum()
	pulls := uint64(4 * (steps - 3) * keys)
	if s.Ahead < pulls*6/10 || s.Ahead > pulls || s.Fetched > pulls+4*keys {
		t.Errorf("%d keys were taken of %d that were fetched ahead, of %d that were announced, about a quarter here", s.Ahead, s.Fetched, pulls)
	}
	if s.Copies != 0 || s.Refreshes != 0 || s.Deltas != 0 {
		t.Errorf("%d copies were set up, %d times refreshed", s.Copies, s.Refreshes)
	}
	if remote := s.Remote - s.Fetched; s.Remote < s.Fetched && remote > 0 {
		t.Errorf("%d accesses by message", s.Remote)
	}
}

// A program that announces each key of a step by itself has the values fetched by few operations, and a key that it announces twice once.
func TestKeysThatAreAnnouncedOneByOneAreFetchedTogether(t *testing.T) {
	const keys = 600
	c := fetching(t, 2, 1)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		var there []godwit.Key
		for k := godwit.Key(0); len(there) < keys; k++ {
			if c.Node(0).Home(k) == 1 {
				there = append(there, k)
			}
		}
		for _, k := range append(there, there[:10]...) {
			if err := w.Intent([]godwit.Key{k}, 3, 4); err != nil {
				return err
			}
		}
		w.Advance()
		w.Advance()
		fetched, open := c.Node(0).Stats().Fetched, c.Node(0).Snapshot().Open
		if fetched != keys || open == 0 || open > 5 {
			t.Errorf("%d keys were fetched by %d operations, want %d by some", fetched, open, keys)
		}
		w.Advance()
		if err := w.Pull(ctx, there, make([]float32, 2*keys)); err != nil {
			return err
		}
		if s := c.Node(0).Stats(); s.Ahead != keys {
			t.Errorf("%d pulled keys were fetched ahead, want %d", s.Ahead, keys)
		}
		return nil
	})
}

// What is announced for a step again is not fetched again, also where the worker adds its pushes to what it fetches: not before what it has is
// forgotten.
func TestWhatIsAnnouncedAgainIsFetchedOnce(t *testing.T) {
	for _, depth := range []int{0, 3} {
		c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, LongStep: -time.Hour, Depth: depth, Watch: true,
			Network: Network{Latency: 200 * time.Microsecond}, Compute: Compute{Step: 5 * time.Millisecond}})
		run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			if w.ID().Node != 0 {
				return nil
			}
			k := []godwit.Key{keyAt(c, 1)}
			for step := range uint64(4) {
				at := w.Clock() + 1
				for range 10 {
					if err := w.Intent(k, at, at+1); err != nil {
						return err
					}
				}
				w.Advance()
				v := make([]float32, 2)
				if err := w.Pull(ctx, k, v); err != nil {
					return err
				}
				if s := c.Node(0).Stats(); s.Fetched != 1+step || v[0] != float32(step) {
					t.Errorf("depth %d: %d values were fetched for %d steps, and the last is %v, want %d", depth, s.Fetched, 1+step, v[0], step)
				}
				if err := w.Push(ctx, k, []float32{1, 1}); err != nil {
					return err
				}
				w.Advance()
			}
			return nil
		})
	}
}

// What is announced counts until its step comes, also once the planner has handed it to the worker: a program that announces far ahead and never comes
// there is refused more in the end.
func TestStepsThatAreToBeFetchedCountAsAnnounced(t *testing.T) {
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, LongStep: -time.Hour, Eager: true, Watch: true,
		Network: Network{Latency: 200 * time.Microsecond}, Compute: Compute{Step: 5 * time.Millisecond}})
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		ks := []godwit.Key{keyAt(c, 1)}
		if err := w.Intent(ks, 6, 7); err != nil {
			return err
		}
		for clock := w.Advance(); clock < 8; clock = w.Advance() {
			want := int64(0)
			if clock < 5 {
				want = 1
			}
			if n := c.Node(0).Intents(); n != want {
				t.Errorf("at clock %d, %d keys are announced, want %d", clock, n, want)
			}
		}
		if n := c.Node(0).Stats().Fetched; n != 1 {
			t.Errorf("%d keys were fetched, want 1", n)
		}
		return nil
	})
}

// keyAt returns a key whose home is a node, other than some.
func keyAt(c *Cluster, home godwit.NodeID, but ...godwit.Key) godwit.Key {
	for k := godwit.Key(0); ; k++ {
		if c.Node(0).Home(k) == home && !slices.Contains(but, k) {
			return k
		}
	}
}

// What is used in two steps in a row, or is under an operation that was not waited for, is not
// fetched: it would be of before that use. Nothing is fetched earlier than the step before its own.
func TestWhatIsStillUsedIsNotFetchedAhead(t *testing.T) {
	c := fetching(t, 2, 1)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		there := keyAt(c, 1)
		other := keyAt(c, 1, there)
		fetched := c.Node(0).Stats().Fetched
		came := func(what string, want uint64) error {
			before := fetched
			if fetched = c.Node(0).Stats().Fetched; fetched-before != want {
				return fmt.Errorf("%s: %d keys were fetched, want %d", what, fetched-before, want)
			}
			return nil
		}
		announce := func(ahead godwit.Clock, ks ...godwit.Key) error {
			return w.Intent(ks, w.Clock()+ahead, w.Clock()+ahead+1)
		}
		for range 3 {
			w.Advance()
		}
		for _, x := range []struct {
			what string
			keys []godwit.Key
			want uint64
		}{{"two keys", []godwit.Key{there, other}, 2}, {"one of them again", []godwit.Key{there}, 0}, {"and again", []godwit.Key{there}, 0}, {"the other", []godwit.Key{other}, 1}} {
			if err := announce(1, x.keys...); err != nil {
				return err
			}
			if err := came(x.what, x.want); err != nil {
				return err
			}
			w.Advance()
		}
		w.Advance()
		h, err := w.PushAsync(ctx, []godwit.Key{there}, []float32{1, 1})
		if err != nil {
			return err
		}
		if err := announce(1, there, other); err != nil {
			return err
		}
		if err := came("one that is pushed to, and another", 1); err != nil {
			return err
		}
		if err := w.Wait(ctx, h); err != nil {
			return err
		}
		w.Advance()
		if err := announce(3, there, other); err != nil {
			return err
		}
		for _, want := range []uint64{0, 0, 2} {
			if err := came("long before", want); err != nil {
				return err
			}
			if err := w.Pull(ctx, []godwit.Key{keyAt(c, 1, there, other)}, make([]float32, 2)); err != nil { // the planner has time to act
				return err
			}
			if want == 0 {
				w.Advance()
			}
		}
		return nil
	})
}

// What a step uses and could not be fetched before it is asked for when it begins, and so not in its pull; but anew, if the
// worker has waited for its own operation since: the answer may be of before that.
func TestWhatAStepLacksIsAskedForOnceWhenItBegins(t *testing.T) {
	c := fetching(t, 2, 1)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		there, v := []godwit.Key{keyAt(c, 1)}, make([]float32, 2)
		for i, waits := range []bool{false, false, true, false} {
			h, err := w.PushAsync(ctx, there, []float32{1, 1})
			if err != nil {
				return err
			}
			if err := w.Intent(there, w.Clock()+1, w.Clock()+2); err != nil {
				return err
			}
			w.Advance()
			if waits {
				if err := w.Wait(ctx, h); err != nil {
					return err
				}
			}
			before := c.Node(0).Stats().Frames
			if err := w.Pull(ctx, there, v); err != nil {
				return err
			}
			if v[0] != float32(i+1) {
				return fmt.Errorf("step %d reads %v", i, v)
			}
			if asked := c.Node(0).Stats().Frames > before; i > 0 && asked != waits {
				return fmt.Errorf("step %d, which has waited: %v, asks in its pull: %v", i, waits, asked)
			}
			if err := w.Wait(ctx, h); err != nil {
				return err
			}
		}
		return nil
	})
}

// A value is not used that was fetched before its key came to the node and left again: the worker
// may have changed it there.
func TestAKeyThatWasHereMeanwhileIsReadAnew(t *testing.T) {
	c := fetching(t, 2, 2)
	phase := 0
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		k, pause := []godwit.Key{keyAt(c, 1)}, []godwit.Key{keyAt(c, 1-w.ID().Node, keyAt(c, 1))}
		until := func(p int) error {
			for phase < p {
				if err := w.Pull(ctx, pause, make([]float32, 2)); err != nil {
					return err
				}
			}
			return nil
		}
		switch w.ID() {
		case godwit.WorkerID{Node: 0, Local: 1}:
			if err := until(1); err != nil {
				return err
			}
			if err := w.Localize(ctx, k); err != nil {
				return err
			}
			phase = 2
		case godwit.WorkerID{Node: 1, Local: 0}:
			if err := until(3); err != nil {
				return err
			}
			if err := w.Localize(ctx, k); err != nil {
				return err
			}
			phase = 4
		case godwit.WorkerID{}:
			for range 3 {
				w.Advance()
			}
			if err := w.Intent(k, w.Clock()+1, w.Clock()+2); err != nil {
				return err
			}
			phase = 1
			if err := until(2); err != nil {
				return err
			}
			if err := w.Push(ctx, k, []float32{1, 1}); err != nil {
				return err
			}
			phase = 3
			if err := until(4); err != nil {
				return err
			}
			w.Advance()
			v := make([]float32, 2)
			if err := w.Pull(ctx, k, v); err != nil {
				return err
			}
			if s := c.Node(0).Stats(); v[0] != 1 || s.Fetched != 1 || s.Moves != 1 {
				return fmt.Errorf("the worker reads %v after its own push; %d keys were fetched and %d came", v, s.Fetched, s.Moves)
			}
		}
		return nil
	})
}

// A barrier ends the use of what was fetched before it.
func TestNothingIsUsedAfterABarrierThatWasFetchedBefore(t *testing.T) {
	c := fetching(t, 2, 1)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		k := []godwit.Key{0}
		for c.Node(0).Home(k[0]) != 1 {
			k[0]++
		}
		for range 3 {
			w.Advance()
		}
		if w.ID().Node == 0 {
			if err := w.Intent(k, w.Clock()+3, w.Clock()+4); err != nil {
				return err
			}
		}
		for range 2 {
			if err := w.Pull(ctx, []godwit.Key{3998 + godwit.Key(w.ID().Node)}, make([]float32, 2)); err != nil {
				return err
			}
			w.Advance()
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.ID().Node == 1 {
			if err := w.Push(ctx, k, []float32{1, 1}); err != nil {
				return err
			}
		} else if c.Node(0).Stats().Fetched != 1 {
			return fmt.Errorf("%d keys were fetched: the test is vacuous", c.Node(0).Stats().Fetched)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		w.Advance()
		v := make([]float32, 2)
		if err := w.Pull(ctx, k, v); err != nil {
			return err
		}
		if v[0] != 1 {
			return fmt.Errorf("node %d reads %v after a push and a barrier", w.ID().Node, v)
		}
		return nil
	})
}

// The keys that a worker announced for its first steps are not fetched step by step any more when it shows that its steps are short: they
// come.
func TestShortStepsAreNotFetchedOnceTheyAreKnownToBeShort(t *testing.T) {
	const steps, keys = 38, 20
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, Watch: true,
		Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 2 * time.Microsecond}})
	fetched, waited := uint64(0), 0
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		var batches [][]godwit.Key
		for k := godwit.Key(0); len(batches) < steps; k++ {
			if c.Node(0).Home(k) != 1 {
				continue
			}
			if n := len(batches); n == 0 || len(batches[n-1]) == keys {
				batches = append(batches, nil)
			}
			batches[len(batches)-1] = append(batches[len(batches)-1], k)
		}
		batches = batches[:steps-1]
		for i, ks := range batches {
			if err := w.Intent(ks, godwit.Clock(i+1), godwit.Clock(i+2)); err != nil {
				return err
			}
		}
		w.Advance()
		v := make([]float32, 2*keys)
		for i, ks := range batches {
			began := c.Now()
			if err := w.Pull(ctx, ks, v); err != nil {
				return err
			}
			if c.Now()-began > 50*time.Microsecond && i >= steps/2 {
				waited++
			}
			if err := w.Push(ctx, ks, v); err != nil {
				return err
			}
			w.Advance()
		}
		fetched = c.Node(0).Stats().Fetched
		return nil
	})
	if fetched == 0 {
		t.Error("nothing was fetched: the test is vacuous")
	}
	if fetched > steps/2*keys {
		t.Errorf("%d keys of %d were fetched", fetched, (steps-1)*keys)
	}
	if waited > 2 {
		t.Errorf("%d steps of the second half waited for a message", waited)
	}
}

// Where steps take less time than values take to come, these are fetched as many steps ahead as that takes, also of keys that
// each step uses: the worker adds its own pushes, waits for nothing, and reads what it has pushed.
func TestShortStepsAreFetchedSeveralStepsAhead(t *testing.T) {
	const steps, keys, latency = 120, 20, 5 * time.Millisecond
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, Watch: true,
		Network: Network{Latency: latency}, Compute: Compute{Step: 3 * time.Millisecond}})
	took := map[int]time.Duration{}
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		var ks []godwit.Key
		for range keys {
			ks = append(ks, keyAt(c, 1, ks...))
		}
		v, push := make([]float32, 2*keys), slices.Repeat([]float32{1}, 2*keys)
		var hs []godwit.Handle
		for i := range steps {
			if i == 0 {
				for j := range 30 {
					if err := w.Intent(ks, godwit.Clock(j+1), godwit.Clock(j+2)); err != nil {
						return err
					}
				}
			} else if err := w.Intent(ks, w.Clock()+30, w.Clock()+31); err != nil {
				return err
			}
			began := c.Now()
			if err := w.Pull(ctx, ks, v); err != nil {
				return err
			}
			took[i] = c.Now() - began
			for j, x := range v {
				if x != float32(i) {
					return fmt.Errorf("step %d reads %v of key %d", i, x, ks[j/2])
				}
			}
			h, err := w.PushAsync(ctx, ks, push)
			if err != nil {
				return err
			}
			hs = append(hs, h)
			w.Advance()
		}
		return w.Wait(ctx, hs...)
	})
	if took[1] < latency {
		t.Errorf("the second step waits for %v: the test is vacuous", took[1])
	}
	for i := steps - 20; i < steps; i++ {
		if took[i] > latency/2 {
			t.Errorf("step %d waits for %v", i, took[i])
		}
	}
}
