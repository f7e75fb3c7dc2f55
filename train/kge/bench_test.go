//go:build !race

package kge

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// BenchmarkStep trains batches of a graph of FB15k-237's size with the default
// settings, on the plain server of the tests. The baseline is the arithmetic
// alone, on values that are there already.
func BenchmarkStep(b *testing.B) {
	g := randomGraph(14_541, 237, 100_000, 1)
	task, s := setup(b, DefaultConfig(), g, 1, 1)
	w := s.Workers(0)[0]
	start := func(b *testing.B) (*trainer, *train.Batch[Batch]) {
		tr, err := task.Trainer(w, train.Partition{Count: 1})
		if err != nil {
			b.Fatal(err)
		}
		batch := new(train.Batch[Batch])
		tr.Load(batch, train.At{Epoch: 1})
		return tr.(*trainer), batch
	}
	perTriple := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*task.cfg.Batch), "ns/triple")
	}
	b.Run("whole", func(b *testing.B) {
		tr, batch := start(b)
		for b.Loop() {
			tr.Load(batch, train.At{Epoch: 1})
			id, err := w.PrepareSample(batch.Sampler, batch.Samples, w.Clock(), godwit.Forever)
			if err != nil {
				b.Fatal(err)
			}
			batch.Sample = id
			if _, err := tr.Step(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			w.FinishSample(id)
		}
		perTriple(b)
	})
	b.Run("arithmetic", func(b *testing.B) {
		tr, st := firstStep(b, task, w)
		for b.Loop() {
			lossAndGradient(tr, &st)
		}
		perTriple(b)
	})
}

// BenchmarkLoss is the loss of a query with 500 negatives. The copy of the scores is
// part of it.
func BenchmarkLoss(b *testing.B) {
	scores, neg, scratch := make([]float32, 500), make([]float32, 500), make([]float32, 500)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range scores {
		scores[i] = float32(3 * r.NormFloat64())
	}
	for _, x := range lossCases[:3] {
		l, err := lossNamed(x.name, 5000, 0, x.alpha)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(x.name, " ", x.alpha), func(b *testing.B) {
			for b.Loop() {
				copy(neg, scores)
				l(1, neg, &draws{n: len(neg)}, scratch)
			}
		})
	}
}

func BenchmarkRank(b *testing.B) {
	g := randomGraph(14_541, 237, 10_000, 1)
	task, s := setup(b, DefaultConfig(), g, 1, 1)
	for b.Loop() {
		if _, err := task.Rank(b.Context(), &train.Env{Workers: s.Workers(0)}, "x", g.Test); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*2*len(g.Test)), "µs/query")
}
