package bench

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
)

// asTrainer is the argument with which the test binary trains beside another process.
const asTrainer = "bench-trainer"

// A stint is how two processes train beside each other: while so many cuts are made, back to back, or for a time.
type stint struct {
	Cuts int
	For  time.Duration
}

// A steps is how long the steps of both processes' workers took.
type steps struct {
	Took     []time.Duration
	Crossing time.Duration // the longest that a worker took to cross into a cut
	Bytes    uint64        // handed over
}

var cutRows = order{Rows: 100_000, Dim: 32, Policy: "adaptive"}

// BenchmarkCutsBetweenProcesses says how long steps of two processes' workers take, with cuts back to back and without:
// a push of 16 rows, of which the other process owns half.
func BenchmarkCutsBetweenProcesses(b *testing.B) {
	for _, x := range []struct {
		name  string
		stint stint
	}{{"Without", stint{For: 5 * time.Second}}, {"With", stint{Cuts: 50}}} {
		b.Run(x.name, func(b *testing.B) {
			var all steps
			for b.Loop() {
				s := trainBeside(b, x.stint)
				all.Took = append(all.Took, s.Took...)
				all.Crossing, all.Bytes = max(all.Crossing, s.Crossing), all.Bytes+s.Bytes
			}
			slices.Sort(all.Took)
			b.ReportMetric(float64(all.Took[len(all.Took)*999/1000])/1e6, "ms/999th")
			b.ReportMetric(float64(all.Took[len(all.Took)-1])/1e6, "ms/longest")
			b.ReportMetric(float64(len(all.Took))/float64(b.N), "steps/op")
			if x.stint.Cuts > 0 {
				b.ReportMetric(float64(all.Crossing)/1e6, "ms/crossing")
				b.ReportMetric(float64(all.Bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
			}
		})
	}
}

// trainBeside trains in this process and in another one that it starts.
func trainBeside(b *testing.B, o stint) steps {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], asTrainer)
	child.Stderr = os.Stderr
	in, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	l := newLink(0, in, out)
	if err := l.send(orders, &o); err != nil {
		b.Fatal(err)
	}
	mine, err := trainFor(ctx, l, o)
	if err != nil {
		b.Fatal(err)
	}
	var others steps
	if err := l.receive(ctx, reports, &others); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		b.Fatal(err)
	}
	return steps{append(mine.Took, others.Took...), max(mine.Crossing, others.Crossing), mine.Bytes + others.Bytes}
}

// serveTrainer is the other process.
func serveTrainer(ctx context.Context, in io.Reader, out io.Writer) error {
	l := newLink(peerNode, in, out)
	var o stint
	if err := l.receive(ctx, orders, &o); err != nil {
		return err
	}
	s, err := trainFor(ctx, l, o)
	if err != nil {
		return err
	}
	return l.send(reports, &s)
}

func trainFor(ctx context.Context, l *link, o stint) (s steps, err error) {
	n, err := startNode(ctx, l, &cutRows)
	if err != nil {
		return s, err
	}
	w := n.Worker(0)
	if err := w.Barrier(ctx); err != nil {
		return s, err
	}
	var over atomic.Bool
	var trained sync.WaitGroup
	var failed error
	trained.Go(func() { s.Took, failed = pushUntil(ctx, w, uint64(l.self), &over) })
	for i := range uint64(o.Cuts) {
		c, err := n.Cut(ctx, i+1, node.WholeCut, func(int, []uint64, []float32) error { return nil })
		if err != nil {
			return s, err
		}
		s.Crossing, s.Bytes = max(s.Crossing, c.Longest), s.Bytes+c.Bytes
	}
	select {
	case <-time.After(o.For):
	case <-ctx.Done():
	}
	over.Store(true)
	if trained.Wait(); failed != nil {
		return s, failed
	}
	if err := w.Barrier(ctx); err != nil {
		return s, err
	}
	return s, n.Close(ctx)
}

// pushUntil makes steps and returns how long each took.
func pushUntil(ctx context.Context, w godwit.Worker, seed uint64, over *atomic.Bool) (took []time.Duration, err error) {
	defer w.(godwit.Cutter).Rest()
	rng := rand.New(rand.NewPCG(seed, 1))
	const batch = 16
	keys, push := make([]godwit.Key, batch), make([]float32, batch*cutRows.Dim)
	for i := range push {
		push[i] = rng.Float32() - 0.5
	}
	for !over.Load() {
		for i := range keys {
			keys[i] = godwit.Key(rng.Uint64N(cutRows.Rows))
		}
		began := time.Now()
		if err := w.Push(ctx, keys, push); err != nil {
			return took, err
		}
		w.Advance()
		took = append(took, time.Since(began))
	}
	return took, nil
}
