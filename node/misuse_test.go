package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

func TestHandlesOfOthersAreErrors(t *testing.T) {
	c := local(t, 2, Config{Model: lengths(t), Workers: 2})
	ctx := background(t)
	keys := homedAt(t, c.Nodes[0], 1, 1)
	v := make([]float32, c.Nodes[0].cfg.Model.Dim(keys[0]))
	mine, other, far := c.Nodes[0].Worker(0), c.Nodes[0].Worker(1), c.Nodes[1].Worker(0)
	h, err := mine.PullAsync(ctx, keys, v)
	must(t, err)
	if h == 0 {
		t.Fatal("the pull was complete at once: there is nothing to wait for")
	}
	// Both have begun an operation of the same number.
	for _, w := range []godwit.Worker{other, far} {
		x := homedAt(t, c.Nodes[0], 1-w.ID().Node, 1)
		g, err := w.PullAsync(ctx, x, make([]float32, w.Model().Dim(x[0])))
		must(t, err)
		must(t, w.Wait(ctx, g))
		err = w.Wait(ctx, h)
		var op *godwit.OpError
		if !errors.Is(err, godwit.ErrHandle) || !errors.As(err, &op) || op.Worker != w.ID() {
			t.Errorf("%v waits for a handle of %v: %v, want %v", w.ID(), mine.ID(), err, godwit.ErrHandle)
		}
	}
	for _, x := range []godwit.Handle{12345, math.MaxUint64, h + 1, h + 1<<16} {
		if err := mine.Wait(ctx, x); !errors.Is(err, godwit.ErrHandle) {
			t.Errorf("waits for handle %#x, which no call returned: %v", uint64(x), err)
		}
	}
	// What is wrong keeps nobody from the rest.
	if err := mine.Wait(ctx, 12345, h); !errors.Is(err, godwit.ErrHandle) {
		t.Errorf("a wrong handle before a right one: %v", err)
	}
	if o := c.Nodes[mine.ID().Node].ops.Of(mine.ID().Local); o.Open() != 0 {
		t.Errorf("%d operations are open", o.Open())
	}
	must(t, mine.Wait(ctx, h))
}

func TestAnIntentOfAClosedNodeIsAnError(t *testing.T) {
	c, err := Local(context.Background(), 2, Config{Model: lengths(t), Workers: 1})
	must(t, err)
	closeAll(t, c)
	if err := c.Nodes[0].Worker(0).Intent([]godwit.Key{0}, 1, 2); !errors.Is(err, godwit.ErrClosed) {
		t.Errorf("got %v, want %v", err, godwit.ErrClosed)
	}
}

// A worker that announces steps and never comes to them is told, once, also where the values of its next step are fetched at once; one that
// advances is not. What it announces without an end is counted.
func TestAForgottenAdvanceIsTold(t *testing.T) {
	const enough = 3000
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	ctx := background(t)
	for _, x := range []struct {
		home          godwit.NodeID
		advance, asks bool
		told          int
	}{{advance: true}, {told: 1}, {asks: true, told: 1}, {home: 1, advance: true, asks: true}, {home: 1, asks: true, told: 1}} {
		log.Reset()
		c := local(t, 2, Config{Model: lengths(t), Workers: 1})
		w, keys := c.Nodes[0].Worker(0), homedAt(t, c.Nodes[0], x.home, 1)
		v := make([]float32, w.Model().Dim(keys[0]))
		for i := range godwit.Clock(enough) {
			if x.asks {
				i = w.Clock()
			}
			must(t, w.Intent(keys, i+1, i+2))
			must(t, w.Pull(ctx, keys, v))
			if x.advance {
				w.Advance()
			}
		}
		if held := c.Nodes[0].Intents(); x.home == 1 && !x.advance && held < enough/2 {
			t.Errorf("%d keys are counted after %d steps that the worker did not come to", held, enough)
		}
		if got := strings.Count(log.String(), "level=WARN"); got != x.told || x.told > 0 && !strings.Contains(log.String(), "worker 0.0") {
			t.Errorf("told %d times, want %d: %s", got, x.told, log.String())
		}
	}
}

// An appender appends to all that it gets, in every method, as if that were its own.
type appender struct{ godwit.Add }

func spill(vs ...[]float32) {
	for _, v := range vs {
		_ = append(v, 99)
	}
}
func (appender) StateLen(int) int { return 1 }
func (a appender) Apply(value, state, push []float32) {
	a.Add.Apply(value, nil, push)
	state[0]++
	spill(value, state, push)
}
func (appender) Pack(value, state, dvalue []float32) { spill(value, state, dvalue) }
func (a appender) Merge(value, state, dvalue []float32) {
	a.Add.Apply(value, nil, dvalue)
	spill(value, state, dvalue)
}
func (appender) Fresh(dim int) int { return dim + 1 }

// What a rule appends to a vector is not in the row, nor in the vectors behind it.
func TestWhatARuleAppendsGoesNowhere(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "t", Rows: 100, Dim: 1, Rule: appender{}})
	for _, p := range []placement.Policy{placement.Static, placement.ReplicateAll} {
		ctx := background(t)
		c := local(t, 2, Config{Model: m, Policy: p, Workers: 1})
		w := c.Nodes[0].Worker(0)
		keys := append(homedAt(t, c.Nodes[0], 0, 3), homedAt(t, c.Nodes[0], 1, 3)...)
		push := []float32{1, 2, 3, 4, 5, 6}
		must(t, w.Push(ctx, keys, push))
		must(t, w.WaitSync(ctx))
		for i, k := range keys {
			row, here, err := c.Nodes[i/3].ReadRow(k, nil)
			if err != nil || !here || row[0] != float32(i+1) || row[1] != 1 {
				t.Errorf("%s: the row of push %d is %v, here: %v, %v", p.Name(), i, row, here, err)
			}
		}
	}
}
