package w2v

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// aStep returns a trainer with a batch and values that are large enough for
// gradients to differ. Half of the negatives are words of the batch.
func aStep(t *testing.T, method string, seed uint64) (*trainer, *train.Batch[Batch]) {
	t.Helper()
	c, q, _ := generated(t, 4, 2, 2000, 30)
	task, s := setup(t, small(method), c, q, 1, 1)
	tr := aTrainer(t, task, s.Workers(0)[0])
	b := new(train.Batch[Batch])
	tr.Load(b, traintest.At(tr, task.Chunks(), int(seed)))
	b.Data.rate = 1
	tr.layOut(b.Keys, b.Samples)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := len(b.Keys); i < len(tr.keysOf); i++ {
		if i%2 == 0 {
			tr.keysOf[i] = b.Keys[b.Data.words+r.IntN(b.Data.words)]
		} else {
			tr.keysOf[i] = tr.keys.output + godwit.Key(r.IntN(len(task.keep)))
		}
	}
	for i := range tr.vals {
		tr.vals[i] = float32(r.NormFloat64())
	}
	return tr, b
}

// plainLoss is the loss of a step as word2vec defines it (Mikolov et al. 2013,
// "Distributed Representations", equation 4): of each pair, −log σ of its score,
// and for each of its negatives other than the word to predict, −log σ of the
// score's opposite, weighted for as many negatives as are to count.
func plainLoss(tr *trainer, b *train.Batch[Batch]) float64 {
	d, words := tr.task.cfg.Dim, b.Data.words
	value := func(i int) []float32 { return tr.vals[i*d : (i+1)*d] }
	term := func(x float64) float64 { return math.Log1p(math.Exp(-x)) } // −log σ(x)
	dot := func(a []float64, x []float32) (sum float64) {
		for i := range a {
			sum += a[i] * float64(x[i])
		}
		return sum
	}
	weight := float64(tr.task.cfg.Negatives) / float64(b.Samples)
	loss := 0.0
	predict := func(query []float64, word int32) {
		loss += term(dot(query, value(words+int(word))))
		for j := range b.Samples {
			if tr.keysOf[2*words+j] != b.Keys[words+int(word)] {
				loss += weight * term(-dot(query, value(2*words+j)))
			}
		}
	}
	from := 0
	for _, end := range b.Data.ends {
		sentence, spans := b.Data.tokens[from:end], b.Data.spans[from:end]
		from = int(end)
		for i, word := range sentence {
			mean, n := make([]float64, d), 0.0
			for j, other := range sentence {
				if j == i || j < i-int(spans[i]) || j > i+int(spans[i]) {
					continue
				}
				in := make([]float64, d)
				for k, x := range value(int(other)) {
					in[k] = float64(x)
					mean[k] += float64(x)
				}
				n++
				if tr.task.cfg.Method == SkipGram {
					predict(in, word)
				}
			}
			if tr.task.cfg.Method == CBOW {
				for k := range mean {
					mean[k] /= n
				}
				predict(mean, word)
			}
		}
	}
	return loss
}

func (t *trainer) lossAndGradient(b *train.Batch[Batch]) float64 {
	clear(t.grads)
	s := t.split(&b.Data)
	t.forward(&s)
	l := t.loss(&s)
	t.backward(&s)
	return l
}

func TestTheLossIsWord2vecs(t *testing.T) {
	for _, method := range []string{SkipGram, CBOW} {
		for seed := range uint64(10) {
			tr, b := aStep(t, method, seed)
			got, want := tr.lossAndGradient(b), plainLoss(tr, b)
			// Sums of some hundred terms of float32, each right to about 1e-6.
			if math.Abs(got-want) > 1e-5*want {
				t.Errorf("%s, step %d: loss %v, want %v", method, seed, got, want)
			}
			if len(tr.hits) == 0 {
				t.Errorf("%s, step %d: no negative is a word of the batch, which is not tested so", method, seed)
			}
		}
	}
}

func TestGradientsAreDifferencesOfTheLoss(t *testing.T) {
	const h = 1e-3
	for _, method := range []string{SkipGram, CBOW} {
		tr, b := aStep(t, method, 3)
		tr.lossAndGradient(b)
		grads := append([]float32(nil), tr.grads...)
		for i, g := range grads {
			x := tr.vals[i]
			tr.vals[i] = x + h
			up := plainLoss(tr, b)
			step := float64(tr.vals[i])
			tr.vals[i] = x - h
			down := plainLoss(tr, b)
			step -= float64(tr.vals[i])
			tr.vals[i] = x
			// The difference is off by h² times a third derivative, and the gradient
			// by the rounding of its sums.
			if want := (up - down) / step; math.Abs(float64(g)-want) > 1e-4*(1+math.Abs(want)) {
				t.Errorf("%s: gradient %d is %v, differences give %v", method, i, g, want)
			}
		}
	}
}

func TestGradientsFallWithTheLearningRate(t *testing.T) {
	for _, method := range []string{SkipGram, CBOW} {
		tr, b := aStep(t, method, 1)
		loss := tr.lossAndGradient(b)
		whole := append([]float32(nil), tr.grads...)
		b.Data.rate = 0.25
		if again := tr.lossAndGradient(b); again != loss {
			t.Errorf("%s: the loss is %v, and %v at another rate", method, loss, again)
		}
		for i, g := range tr.grads {
			if math.Abs(float64(g-whole[i]/4)) > 1e-5*(1+math.Abs(float64(whole[i]))) {
				t.Fatalf("%s: gradient %d is %v, a quarter of %v wanted", method, i, g, whole[i])
			}
		}
	}
}
