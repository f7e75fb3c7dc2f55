package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
)

// twoNodes is a cluster of which worker 0 of node 0 is the one tested.
func twoNodes(t testing.TB) (c *Cluster, w godwit.Worker, here, there []godwit.Key) {
	c = local(t, 2, Config{Model: lengths(t), Workers: 1})
	return c, c.Nodes[0].Worker(0), homedAt(t, c.Nodes[0], 0, 20), homedAt(t, c.Nodes[0], 1, 20)
}

func TestNoKeysAreFine(t *testing.T) {
	ctx := background(t)
	_, w, _, _ := twoNodes(t)
	must(t, w.Pull(ctx, nil, nil))
	must(t, w.Push(ctx, nil, nil))
	must(t, w.Set(ctx, nil, []float32{}))
	must(t, w.Localize(ctx, nil))
	must(t, w.Intent(nil, 0, 10))
	h, err := w.PullAsync(ctx, []godwit.Key{}, nil)
	must(t, err)
	must(t, w.Wait(ctx, h))
	must(t, w.Wait(ctx))
}

func TestAKeyThatStandsTwiceIsServedTwice(t *testing.T) {
	ctx := background(t)
	_, w, here, there := twoNodes(t)
	for _, k := range []godwit.Key{here[0], there[0]} {
		dim := w.Model().Dim(k)
		keys := []godwit.Key{k, k, k}
		push := valuesOf(w.Model(), keys)
		for i := range push {
			push[i] = float32(1 + i/dim)
		}
		must(t, w.Push(ctx, keys, push))
		dst := valuesOf(w.Model(), keys)
		must(t, w.Pull(ctx, keys, dst))
		for i, v := range dst {
			if want := float32(10*int(k) + i%dim + 1 + 2 + 3); v != want {
				t.Errorf("key %d: float %d is %v, want %v", k, i, v, want)
			}
		}
		must(t, w.Set(ctx, keys, push))
		must(t, w.Pull(ctx, keys[:1], dst[:dim]))
		if dst[0] != 3 {
			t.Errorf("key %d is %v after it was set to 1, 2 and 3 in one call", k, dst[0])
		}
	}
}

func TestMistakesAreToldBeforeAnythingIsDone(t *testing.T) {
	ctx := background(t)
	_, w, here, there := twoNodes(t)
	m := w.Model()
	good := []godwit.Key{here[0], there[0]}
	bad := []godwit.Key{here[0], there[0], godwit.Key(m.Keys())}
	huge := []godwit.Key{here[0], math.MaxUint64}
	one := valuesOf(m, good)
	for i := range one {
		one[i] = 1
	}
	long := append(one, 1)
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"pull out of range":     {w.Pull(ctx, bad, long), godwit.ErrKeyRange},
		"push out of range":     {w.Push(ctx, bad, long), godwit.ErrKeyRange},
		"push far out of range": {w.Push(ctx, huge, one), godwit.ErrKeyRange},
		"set out of range":      {w.Set(ctx, bad, long), godwit.ErrKeyRange},
		"localize out of range": {w.Localize(ctx, bad), godwit.ErrKeyRange},
		"intent out of range":   {w.Intent(bad, 0, 1), godwit.ErrKeyRange},
		"pull into too much":    {w.Pull(ctx, good, long), godwit.ErrLength},
		"pull into too little":  {w.Pull(ctx, good, one[1:]), godwit.ErrLength},
		"pull into nil":         {w.Pull(ctx, good, nil), godwit.ErrLength},
		"push of too much":      {w.Push(ctx, good, long), godwit.ErrLength},
		"push of too little":    {w.Push(ctx, good, one[1:]), godwit.ErrLength},
		"set of too little":     {w.Set(ctx, good, one[1:]), godwit.ErrLength},
	} {
		var op *godwit.OpError
		if !errors.Is(c.err, c.want) || !errors.As(c.err, &op) {
			t.Errorf("%s: %v, want an OpError of %v", what, c.err, c.want)
			continue
		}
		if op.Worker != w.ID() || op.Keys == 0 || op.First != here[0] || !strings.HasPrefix(what, op.Op) {
			t.Errorf("%s: %+v does not say who, what and which keys", what, op)
		}
	}
	dst := valuesOf(m, good)
	must(t, w.Pull(ctx, good, dst))
	must(t, eachFloat(m, good, func(k godwit.Key, i, off int) error {
		if want := float32(10*int(k) + i); dst[off] != want {
			return fmt.Errorf("key %d is %v after calls that failed, want %v", k, dst[off], want)
		}
		return nil
	}))
	if _, err := w.PrepareSample(0, 1, 0, 1); err == nil {
		t.Error("a sampler that does not exist is no error")
	}
	if err := w.PullSample(ctx, 77, here[:1], dst[:1]); !errors.Is(err, godwit.ErrSample) {
		t.Errorf("a sample that does not exist: %v", err)
	}
}

func TestFloatsBeyondARowAreRefused(t *testing.T) {
	c := local(t, 1, Config{Model: model(t, 10, 3), Workers: 1})
	n := c.Nodes[0]
	for _, x := range []struct {
		k    godwit.Key
		at   int
		want error
	}{
		{3, 1, nil}, {3, 2, godwit.ErrLength}, {3, -1, godwit.ErrLength}, {3, math.MaxInt, godwit.ErrLength},
		{10, 0, godwit.ErrKeyRange}, {math.MaxUint64, 0, godwit.ErrKeyRange},
	} {
		if here, err := n.WriteRow(x.k, x.at, []float32{1, 2}); here != (x.want == nil) || !errors.Is(err, x.want) {
			t.Errorf("two floats from %d on of key %d: %v, %v, want %v", x.at, x.k, here, err, x.want)
		}
	}
	if row, here, err := n.ReadRow(3, nil); err != nil || !here || !slices.Equal(row, []float32{0, 1, 2}) {
		t.Errorf("the row is %v, %v, %v", row, here, err)
	}
	if _, _, err := n.ReadRow(10, nil); !errors.Is(err, godwit.ErrKeyRange) {
		t.Errorf("a row beyond the last: %v", err)
	}
}

func TestPullIfLocalNeverWaits(t *testing.T) {
	_, w, here, there := twoNodes(t)
	dst := make([]float32, 3)
	if !w.PullIfLocal(here[0], dst[:w.Model().Dim(here[0])]) || dst[0] != float32(10*here[0]) {
		t.Errorf("key %d, owned here: %v", here[0], dst)
	}
	dst[0] = -1
	for what, local := range map[string]bool{
		"owned elsewhere": w.PullIfLocal(there[0], dst[:w.Model().Dim(there[0])]),
		"out of range":    w.PullIfLocal(godwit.Key(w.Model().Keys()), dst[:1]),
		"dst too long":    w.PullIfLocal(here[0], make([]float32, 4)),
		"dst too short":   w.PullIfLocal(here[0], nil),
	} {
		if local {
			t.Errorf("%s: is local", what)
		}
	}
	if dst[0] != -1 {
		t.Error("dst was written although the key is not local")
	}
}

func TestManyOperationsMayBeOutstandingAndNeedNotBeWaitedFor(t *testing.T) {
	ctx := background(t)
	_, w, here, there := twoNodes(t)
	keys := append(append([]godwit.Key{}, here...), there...)
	push := valuesOf(w.Model(), keys)
	for i := range push {
		push[i] = 1
	}
	n := 3 * host.Usual.Ops
	for range n {
		_, err := w.PushAsync(ctx, keys, push)
		must(t, err)
	}
	dst := valuesOf(w.Model(), keys)
	must(t, w.Pull(ctx, keys, dst))
	must(t, eachFloat(w.Model(), keys, func(k godwit.Key, i, off int) error {
		if want := float32(10*int(k) + i + n); dst[off] != want {
			return fmt.Errorf("key %d is %v after %d pushes that nobody waited for, want %v", k, dst[off], n, want)
		}
		return nil
	}))
}

func TestAHandleWaitedForTwiceIsDone(t *testing.T) {
	ctx := background(t)
	_, w, here, there := twoNodes(t)
	var hs []godwit.Handle
	dsts := make([][]float32, 100)
	for i := range dsts {
		dsts[i] = make([]float32, w.Model().Dim(there[i%len(there)]))
		h, err := w.PullAsync(ctx, there[i%len(there):][:1], dsts[i])
		must(t, err)
		hs = append(hs, h)
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(hs), func(i, j int) { hs[i], hs[j] = hs[j], hs[i] })
	must(t, w.Wait(ctx, hs...))
	must(t, w.Wait(ctx, hs...))
	must(t, w.Wait(ctx, hs[3], hs[3], 0))
	for i, d := range dsts {
		if k := there[i%len(there)]; d[0] != float32(10*k) {
			t.Errorf("pull %d of key %d reads %v", i, k, d)
		}
	}
	// The handle of an operation that was complete at once.
	h, err := w.PullAsync(ctx, here[:1], make([]float32, w.Model().Dim(here[0])))
	must(t, err)
	if h != 0 {
		t.Errorf("a pull of a key that is here has handle %d, want 0", h)
	}
}

// A call that its context ended leaves the caller's memory alone from then on.
func TestWhatWasCancelledIsNotWrittenLater(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: lengths(t), Workers: 1}, g.place)
	w := c.Nodes[0].Worker(0)
	there := homedAt(t, c.Nodes[0], 1, 20)
	g.shut(1)
	dst := valuesOf(w.Model(), there)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := w.Pull(ctx, there, dst)
	var op *godwit.OpError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op) {
		t.Fatalf("a pull from a node that does not answer: %v", err)
	}
	if op.Op != "pull" || op.Worker != w.ID() || op.Peer != 1 || op.Keys != len(there) || op.First != there[0] || op.Last != there[len(there)-1] {
		t.Errorf("the error does not name operation, peer and keys: %+v", op)
	}
	t.Log(err)
	cause := errors.New("the user pressed a key")
	ctx2, cancel2 := context.WithCancelCause(context.Background())
	h, err := w.PushAsync(ctx2, there[:1], make([]float32, w.Model().Dim(there[0])))
	must(t, err)
	cancel2(cause)
	if err := w.Wait(ctx2, h); !errors.Is(err, cause) || !errors.As(err, &op) {
		t.Errorf("a wait that was cancelled: %v, want the cause", err)
	}
	if err := w.Wait(background(t), h); err != nil {
		t.Errorf("an operation that was given up is waited for again: %v", err)
	}
	if err := w.WaitSync(ctx2); !errors.Is(err, cause) || !errors.As(err, &op) {
		t.Errorf("a WaitSync that was cancelled: %v, want the cause", err)
	}
	for i := range dst {
		dst[i] = -7
	}
	g.open(1)
	must(t, w.WaitSync(background(t)))
	must(t, w.Pull(background(t), there, valuesOf(w.Model(), there)))
	for i, v := range dst {
		if v != -7 {
			t.Fatalf("float %d was written after the call had returned", i)
		}
	}
	eventually(t, "the given up operations free their slots", func() bool {
		o := c.Nodes[0].ops.Of(0)
		return o.Open() == 0 && o.UnderWay() == 0
	})
}

func TestStrangeIntentsDoNoHarm(t *testing.T) {
	rounds := 300 * *scale
	c := local(t, 3, Config{Model: lengths(t), Workers: 2})
	m := c.Nodes[0].cfg.Model
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		for i := range rounds {
			keys := some(rng, m, 10)
			c := w.Clock()
			for _, span := range [][2]godwit.Clock{
				{c - 5, c}, {c, c}, {c + 5, c + 2}, {-5, -3}, // in the past, empty, turned round
				{math.MinInt64, c + 1}, {math.MinInt64, math.MinInt64}, {math.MinInt64, math.MaxInt64}, // huge
				{c + 1, c + 9}, {c + 2, c + 4}, {c + 3, c + 12}, {c + 1, c + 9}, // nested, overlapping, repeated
				{math.MaxInt64 - 1, math.MaxInt64}, {godwit.Forever, godwit.Forever}, {c + 1<<40, godwit.Forever}, // never reached
			} {
				if rng.IntN(4) == 0 {
					if err := w.Intent(keys, span[0], span[1]); err != nil {
						return err
					}
					clear(keys) // the caller's again
				}
			}
			used := some(rng, m, 10) // mostly not what was announced
			push := valuesOf(m, used)
			for i := range push {
				push[i] = 1
			}
			if err := w.Push(ctx, used, push); err != nil {
				return err
			}
			for i := range push {
				push[i] = -1
			}
			if err := w.Push(ctx, used, push); err != nil {
				return err
			}
			if i%3 == 0 {
				w.Advance()
			}
			if i == rounds/2 {
				for range 1000 {
					w.Advance() // past everything announced
				}
			}
		}
		if err := everywhere(ctx, w); err != nil {
			return err
		}
		for k := godwit.Key(0); m.Has(k); k++ {
			dst := make([]float32, m.Dim(k))
			if err := w.Pull(ctx, []godwit.Key{k}, dst); err != nil {
				return err
			}
			if dst[0] != float32(10*k) {
				return fmt.Errorf("key %d is %v in the end", k, dst[0])
			}
		}
		return w.Barrier(ctx)
	})
	if s := sum(c); s.Copies == 0 || s.Moves == 0 {
		t.Errorf("%d copies, %d moves: the test is vacuous", s.Copies, s.Moves)
	}
}

// An intent is acted on although nothing else wakes the node, whenever it is
// given.
func TestAnIntentAloneIsActedOn(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 4000, 1), Workers: 1})
	w := c.Nodes[0].Worker(0)
	rng := rngOf(w.ID())
	dst := make([]float32, 1)
	for i, k := range homedAt(t, c.Nodes[0], 1, 200*min(*scale, 5)) {
		start := w.Clock() + godwit.Clock(rng.IntN(3)*rng.IntN(200))
		must(t, w.Intent([]godwit.Key{k}, start, start+2))
		for w.Clock() < start {
			w.Advance()
			if rng.IntN(10) == 0 {
				time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
			}
		}
		eventually(t, fmt.Sprintf("-seed %d: key %d (%d) is here, clock %d, intent from %d", *seed, k, i, w.Clock(), start), func() bool { return w.PullIfLocal(k, dst) })
	}
}
