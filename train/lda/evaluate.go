package lda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// A Quality is the result of an evaluation on documents.
type Quality struct {
	Words int64 // that were predicted
	// Perplexity is e to the mean of -log p over the predicted words. The topics of a
	// document are estimated from every second word, and the other words are predicted
	// from them (document completion: Wallach et al., ICML 2009, section 5.1). Documents of counts list equal words one after the
	// other, so these are dealt evenly to both, which makes the figure a percent or two smaller (see the package comment).
	// It is NaN if no word was predicted, as none is of a document that has no other.
	Perplexity float64
}

// EvaluateOn evaluates the model on documents of the words of training, which all
// workers of all nodes divide among them. All nodes call it, each time with
// another name, when the updates of all workers are visible everywhere.
func (t *Task) EvaluateOn(ctx context.Context, env *train.Env, name string, set *bagofwords.Set) (Quality, error) {
	if len(set.Names) != t.words {
		return Quality{}, fmt.Errorf("lda: evaluating documents of %d words by topics of %d", len(set.Names), t.words)
	}
	sum, err := env.SumOverWorkers(ctx, "lda "+name, 2, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		k, err := t.keys(w.Model())
		if err != nil {
			return err
		}
		ev := &evaluator{task: t, set: set, w: w, keys: k, s: newSampler(t)}
		from, to := env.Share(set.Len(), i)
		loss, err := ev.documents(ctx, from, to)
		sums[0], sums[1] = loss.Sum, float64(loss.Examples)
		return err
	})
	if err != nil {
		return Quality{}, err
	}
	q := Quality{Words: int64(sum[1]), Perplexity: math.NaN()}
	if q.Words > 0 {
		q.Perplexity = math.Exp(sum[0] / sum[1])
	}
	return q, nil
}

type evaluator struct {
	task *Task
	set  *bagofwords.Set
	w    godwit.Worker
	keys keys
	s    sampler

	rows   distinct.Rows
	ks     []godwit.Key
	vals   []float32 // of the words, and so many more that the sampler may read the last one's padded
	local  []int32
	topics []uint16
}

func (ev *evaluator) documents(ctx context.Context, from, to int) (train.Loss, error) {
	var l train.Loss
	if from == to {
		return l, nil
	}
	if err := ev.begin(ctx); err != nil {
		return l, err
	}
	for doc := from; doc < to; doc++ {
		if err := ev.pull(ctx, doc); err != nil {
			return l, err
		}
		// What is drawn follows from the document alone, whichever worker evaluates it.
		r := rand.NewPCG(ev.task.cfg.Seed, uint64(doc))
		l.Sum += ev.complete(r)
		l.Examples += int64(len(ev.local) / 2)
	}
	return l, nil
}

// begin reads the counts of the topics.
func (ev *evaluator) begin(ctx context.Context) error {
	for r := range ev.task.rows {
		ev.ks = append(ev.ks, ev.keys.topic+godwit.Key(r))
	}
	totals := make([]float32, len(ev.ks)*ev.task.cfg.Topics)
	if err := ev.w.Pull(ctx, ev.ks, totals); err != nil {
		return err
	}
	ev.s.setTotals(totals)
	return nil
}

// pull gets the counts of a document's words.
func (ev *evaluator) pull(ctx context.Context, doc int) error {
	ev.rows.Reset()
	ev.local, ev.ks = ev.local[:0], ev.ks[:0]
	for _, w := range ev.set.Doc(doc) {
		ev.local = append(ev.local, ev.rows.Add(uint32(w)))
	}
	for _, w := range ev.rows.All() {
		ev.ks = append(ev.ks, ev.keys.word+godwit.Key(w))
	}
	n := len(ev.ks) * ev.task.cfg.Topics
	ev.vals = buffer.Sized(ev.vals, n+lanes)
	return ev.w.Pull(ctx, ev.ks, ev.vals[:n])
}

// complete draws topics for the words with even numbers, which do not change
// the model, and returns the summed -log of the probabilities of the others.
func (ev *evaluator) complete(r *rand.PCG) (loss float64) {
	k, s := ev.task.cfg.Topics, &ev.s
	ev.beginDocument()
	for range ev.task.cfg.Fold {
		ev.sweep(r, 2)
	}
	product := likelihood(1)
	for i := 1; i < len(ev.local); i += 2 {
		id := int(ev.local[i])
		_, p := s.sample(ev.vals[id*k:], r)
		if product *= likelihood(p); product < small {
			loss += product.end()
		}
	}
	return loss + product.end()
}

// beginDocument begins a document none of whose words has a topic.
func (ev *evaluator) beginDocument() {
	ev.topics = buffer.Sized(ev.topics, len(ev.local))
	for i := range ev.topics {
		ev.topics[i] = none
	}
	ev.s.beginDocument(nil)
}

// sweep draws topics for every step-th word of the document.
func (ev *evaluator) sweep(r *rand.PCG, step int) {
	k, s := ev.task.cfg.Topics, &ev.s
	for i := 0; i < len(ev.local); i += step {
		if z := ev.topics[i]; z != none {
			s.countInDocument(int(z), -1)
		}
		id := int(ev.local[i])
		z, _ := s.sample(ev.vals[id*k:], r)
		ev.topics[i] = uint16(z)
		s.countInDocument(z, 1)
	}
}

// ErrCounts is wrapped by the error of [Task.Check] where counts do not add up.
var ErrCounts = errors.New("the counts do not add up")

// Check checks that counts are whole and not negative, that those of a topic's
// words add up to the topic's, and all topics' to as many words as training has
// drawn topics for, beside those of a model that was taken over: those of all
// documents, or, where a first epoch was cut short, fewer. All nodes call it, each time with another name, when the updates
// of all workers are visible everywhere. The error wraps [ErrCounts] where the
// counts were read but are wrong.
func (t *Task) Check(ctx context.Context, env *train.Env, name string) error {
	k := t.cfg.Topics
	// Sums for each topic: by words, by topics; then how many values are no counts, and
	// how many words were counted before.
	sum, err := env.SumOverWorkers(ctx, "lda counts "+name, 2*k+2, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		at, err := t.keys(w.Model())
		if err != nil {
			return err
		}
		if i == 0 && int64(env.Node) == t.beforeAt.Load() {
			sums[2*k+1] = float64(t.before.Load())
		}
		from, to := env.Share(t.words, i)
		if err := t.addUp(ctx, w, at.word+godwit.Key(from), to-from, sums[:k], &sums[2*k]); err != nil {
			return err
		}
		from, to = env.Share(t.rows, i)
		return t.addUp(ctx, w, at.topic+godwit.Key(from), to-from, sums[k:2*k], nil)
	})
	if err != nil {
		return err
	}
	return t.checkSums(sum)
}

func (t *Task) checkSums(sum []float64) error {
	k := t.cfg.Topics
	if odd := sum[2*k]; odd != 0 {
		return fmt.Errorf("lda: %w: %v counts of words are negative or no whole numbers", ErrCounts, odd)
	}
	words := 0.0
	for z := range k {
		if sum[z] != sum[k+z] {
			return fmt.Errorf("lda: %w: topic %d has %v words, and the counts of its words make %v", ErrCounts, z, sum[k+z], sum[z])
		}
		words += sum[z]
	}
	if words > float64(len(t.docs.Words))+sum[2*k+1] {
		return fmt.Errorf("lda: %w: %v words are counted, there are %d", ErrCounts, words-sum[2*k+1], len(t.docs.Words))
	}
	return nil
}

// addUp adds n rows to sums, and to odd how many values are no counts.
func (t *Task) addUp(ctx context.Context, w godwit.Worker, first godwit.Key, n int, sums []float64, odd *float64) error {
	k := t.cfg.Topics
	return tables.Read(ctx, w, first, n, k, func(_ int, vals []float32) error {
		for i, x := range vals {
			sums[i%k] += float64(x)
			if odd != nil && (x < 0 || float64(x) != math.Trunc(float64(x))) {
				*odd++
			}
		}
		return nil
	})
}
