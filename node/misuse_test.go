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
