package sampling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// quietWorker costs nothing, so that what is measured is the sampler.
type quietWorker struct{ local bool }

func (q quietWorker) PullIfLocal(k godwit.Key, _ []float32) bool          { return q.local && k%8 == 0 }
func (quietWorker) Pull(context.Context, []godwit.Key, []float32) error   { return nil }
func (quietWorker) Intent([]godwit.Key, godwit.Clock, godwit.Clock) error { return nil }

func TestNothingIsAllocatedInTheSteadyState(t *testing.T) {
	for _, scheme := range schemes() {
		for _, distinct := range []bool{false, true} {
			for _, settle := range []bool{false, true} {
				s := newSampler(t, LogUniform(200), scheme, distinct, 1)
				if settle {
					s.maxRejected = 0
				}
				cycle := newCycle(s, 40)
				cycle()
				if got := testing.AllocsPerRun(50, cycle); got != 0 {
					t.Errorf("%s, distinct %v, settle %v: %v allocations for eight samples of 40 keys", scheme.Name(), distinct, settle, got)
				}
			}
		}
	}
}

// newCycle returns a function that prepares eight samples of n keys, then pulls
// each in two parts or finishes it half-way.
func newCycle(s *Sampler, n int) func() {
	var w Access = quietWorker{local: true}
	ids := make([]godwit.SampleID, 8)
	keys, vals := make([]godwit.Key, n), make([]float32, n*testDim)
	return func() {
		if s.Watches() {
			accessed(s, 6, 14, 22, 30, 33)
		}
		for i := range ids {
			var err error
			if ids[i], err = s.Prepare(w, n, 0, 1); err != nil {
				panic(err)
			}
		}
		for i, id := range ids {
			half := n / 2
			for range 2 - i%2 {
				if err := s.Pull(context.Background(), w, id, keys[:half], vals[:half*testDim]); err != nil {
					panic(err)
				}
			}
			s.Finish(id)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	freq := make([]float64, 1_000_000)
	for i := range freq {
		freq[i] = 1 / float64(i+1)
	}
	p, err := Power(freq, 0.75)
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range []Distribution{Uniform(1_000_000), LogUniform(1_000_000), p} {
		b.Run(d.Name(), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				d.Draw(r)
			}
		})
	}
}

// BenchmarkPull is the time of a sample of 100 keys of a million, Prepare
// included, at a worker that costs nothing. One key in eight is local.
func BenchmarkPull(b *testing.B) {
	for _, scheme := range Schemes() {
		for _, distinct := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/distinct=%v", scheme.Name(), distinct), func(b *testing.B) {
				s := newSampler(b, Uniform(1_000_000), scheme, distinct, 1)
				if s.Watches() {
					for row := range uint64(2000) {
						accessed(s, row*400+6) // local
					}
				}
				var w Access = quietWorker{local: true}
				keys, vals := make([]godwit.Key, 100), make([]float32, 100*testDim)
				b.ReportAllocs()
				for b.Loop() {
					id, err := s.Prepare(w, len(keys), 0, 1)
					if err != nil {
						b.Fatal(err)
					}
					if err := s.Pull(context.Background(), w, id, keys, vals); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
			})
		}
	}
}
