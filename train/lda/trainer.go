package lda

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: some documents in a row, with
// their words as numbers of the batch's distinct ones. Its keys are those of the
// words, then all rows of the topics.
type Batch struct {
	from, to int // documents
	words    int // distinct ones
	local    []int32
}

// none is the topic of a word that has none yet.
const none = math.MaxUint16

// A trainer is one worker's share of a [Task]. It belongs to one goroutine.
type trainer struct {
	task *Task
	w    godwit.Worker
	keys keys
	rand *rand.Rand

	first  int      // position in the documents' words of the share's first one
	topics []uint16 // of the share's words
	steps  []int    // step i has the documents steps[i] … steps[i+1]-1

	rows  distinct.Rows
	vals  []float32
	diffs []float32 // changes of the counts, to be pushed
	ks    []godwit.Key
	s     sampler
}

func newTrainer(t *Task, w godwit.Worker, k keys, part train.Partition) *trainer {
	begin := func(i int) int { // the first document of part i
		return sort.Search(t.docs.Len(), func(d int) bool { return t.docs.Starts[d] >= len(t.docs.Words)*i/part.Count })
	}
	from, to := begin(part.Index), begin(part.Index+1)
	if part.Index+1 == part.Count {
		to = t.docs.Len()
	}
	tr := &trainer{
		task: t, w: w, keys: k, first: t.docs.Starts[from],
		rand:   rand.New(rand.NewPCG(t.cfg.Seed, uint64(part.Index))),
		topics: make([]uint16, t.docs.Starts[to]-t.docs.Starts[from]),
		s:      newSampler(t),
	}
	for i := range tr.topics {
		tr.topics[i] = none
	}
	tr.steps = append(tr.steps, from)
	for d := from; d < to; d++ {
		if t.docs.Starts[d+1]-t.docs.Starts[tr.steps[len(tr.steps)-1]] >= t.cfg.Batch || d == to-1 {
			tr.steps = append(tr.steps, d+1)
		}
	}
	return tr
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps() int { return len(t.steps) - 1 }

func (t *trainer) Load(b *train.Batch[Batch], _, step int) {
	d := &b.Data
	d.from, d.to = t.steps[step], t.steps[step+1]
	d.local = d.local[:0]
	t.rows.Reset()
	for _, w := range t.task.docs.Words[t.task.docs.Starts[d.from]:t.task.docs.Starts[d.to]] {
		d.local = append(d.local, t.rows.Add(uint32(w)))
	}
	d.words = t.rows.Len()
	b.Keys = b.Keys[:0]
	for _, w := range t.rows.All() {
		b.Keys = append(b.Keys, t.keys.word+godwit.Key(w))
	}
	for r := range t.task.rows {
		b.Keys = append(b.Keys, t.keys.topic+godwit.Key(r))
	}
}

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	n := len(b.Keys) * t.task.cfg.Topics
	t.vals, t.diffs = buffer.Sized(t.vals, n), buffer.Sized(t.diffs, n)
	if err := t.w.Pull(ctx, b.Keys, t.vals); err != nil {
		return train.Loss{}, err
	}
	loss := t.sweep(&b.Data)
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.local))}, t.update(ctx, b.Keys)
}

// update pushes the changes of the counts.
func (t *trainer) update(ctx context.Context, keys []godwit.Key) error {
	ks, diffs := t.changed(keys)
	return t.w.Push(ctx, ks, diffs)
}

// changed returns the keys whose rows changed, and their changes. After some epochs,
// most words keep their topic.
func (t *trainer) changed(ks []godwit.Key) ([]godwit.Key, []float32) {
	k := t.task.cfg.Topics
	t.ks = t.ks[:0]
	for i, key := range ks {
		row := t.diffs[i*k : (i+1)*k]
		if slices.ContainsFunc(row, func(x float32) bool { return x != 0 }) {
			copy(t.diffs[len(t.ks)*k:], row)
			t.ks = append(t.ks, key)
		}
	}
	return t.ks, t.diffs[:len(t.ks)*k]
}

// sweep makes a sweep of Gibbs sampling over the words of a batch: it samples each
// word's topic anew. It leaves the changes of the counts in t.diffs, and returns the
// summed loss: -log of the probability that the counts gave each word before it was
// counted.
func (t *trainer) sweep(b *Batch) (loss float64) {
	clear(t.diffs)
	k, docs := t.task.cfg.Topics, t.task.docs
	t.s.setTotals(t.vals[b.words*k:])
	local := b.local
	for doc := b.from; doc < b.to; doc++ {
		n := len(docs.Doc(doc))
		from := docs.Starts[doc] - t.first
		topics := t.topics[from : from+n]
		t.s.beginDocument(topics)
		row := (b.words + t.task.row(doc)) * k
		totals := t.diffs[row : row+k]
		for i, id := range local[:n] {
			counts, diffs := t.vals[int(id)*k:(int(id)+1)*k], t.diffs[int(id)*k:(int(id)+1)*k]
			if z := topics[i]; z != none {
				t.s.count(counts, int(z), -1)
				diffs[z]--
				totals[z]--
			}
			z, p := t.s.sample(counts, t.rand)
			loss -= math.Log(p)
			t.s.count(counts, z, 1)
			diffs[z]++
			totals[z]++
			topics[i] = uint16(z)
		}
		local = local[n:]
	}
	return loss
}
