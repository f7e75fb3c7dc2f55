package lda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: counts are found by the names of words. The
// models must have the same number of topics. The counts stay in the model, as those of
// documents that were trained before and whose topics do not change any more.
func (t *Task) Import(src export.Source) ([]train.Rows, error) {
	counts, sums, err := t.imported(src)
	if err != nil {
		return nil, fmt.Errorf("lda: the trained model does not fit: %w", err)
	}
	return []train.Rows{
		counts.By(func(i int) string { return t.docs.Names[i] }, nil),
		func(row uint64, dst []float32) bool {
			// In equal parts: only the sum of the rows matters.
			for z, n := range sums {
				from, to := n*int64(row)/int64(t.rows), n*int64(row+1)/int64(t.rows)
				dst[z] = float32(to - from)
			}
			return true
		},
		nil,
	}, nil
}

// Continue implements [train.Continuer]: the model has counted words of other documents.
func (t *Task) Continue(src export.Source, node int) error {
	_, sums, err := t.imported(src)
	if err != nil {
		return fmt.Errorf("lda: the trained model does not fit: %w", err)
	}
	all := int64(0)
	for _, n := range sums {
		all += n
	}
	t.beforeAt.Store(int64(node))
	t.before.Store(all)
	return nil
}

// imported returns the counts of a model, and the sums of those of this task's words.
func (t *Task) imported(src export.Source) (counts *tables.Named, sums []int64, err error) {
	k := t.cfg.Topics
	if err := tables.Same(src, "lda", "lda", k); err != nil {
		return nil, nil, err
	}
	if counts, err = tables.NamedOf(src, CountFile, WordFile, k); err != nil {
		return nil, nil, err
	}
	sums = make([]int64, k)
	for _, name := range t.docs.Names {
		if i, ok := counts.Find(name); ok {
			for z, n := range counts.Row(i) {
				if !(n >= 0 && n <= exact) || n != float32(int64(n)) {
					return nil, nil, fmt.Errorf("%s counts %v words %q of topic %d", CountFile, n, name, z)
				}
				sums[z] += int64(n)
			}
		}
	}
	if most := slices.Max(sums); most/int64(t.rows) > perRow {
		return nil, nil, fmt.Errorf("%d words of a topic are more than can be counted exactly beside %d others", most, len(t.docs.Words))
	}
	return counts, sums, nil
}

// Names returns the words of a trained model.
func Names(src export.Source) ([]string, error) { return src.Lines(WordFile) }

// reloadedRows are enough rows of the topics for whatever an export may count exactly.
const reloadedRows = 64

// Reload is [New] for a model that is trained already: there are no
// documents to train, and the task is not to be trained.
func Reload(cfg Config, held *bagofwords.Set) (*Task, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := held.Check(); err != nil {
		return nil, fmt.Errorf("lda: %w", err)
	}
	docs := &bagofwords.Set{Names: held.Names}
	return &Task{cfg: cfg, docs: docs, held: held, rows: reloadedRows, words: len(docs.Names), steps: []int{0}}, nil
}

// Infer returns the shares of the topics in documents of the words of training, a row
// for each document: those of all words of a document, averaged over the second half of
// the settings' sweeps. What it draws follows from the seed and the document alone.
func (t *Task) Infer(ctx context.Context, w godwit.Worker, set *bagofwords.Set) ([][]float64, error) {
	keys, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	ev := &evaluator{task: t, set: set, w: w, keys: keys, s: newSampler(t)}
	if err := ev.begin(ctx); err != nil {
		return nil, err
	}
	shares := make([][]float64, set.Len())
	for doc := range shares {
		if err := ev.pull(ctx, doc); err != nil {
			return nil, err
		}
		shares[doc] = ev.infer(rand.NewPCG(t.cfg.Seed, uint64(len(ev.local))))
	}
	return shares, nil
}

// infer draws topics for all words of the document.
func (ev *evaluator) infer(r *rand.PCG) []float64 {
	cfg, s := ev.task.cfg, &ev.s
	sums, n := make([]float64, cfg.Topics), 0
	ev.beginDocument()
	for sweep := range cfg.Fold {
		ev.sweep(r, 1)
		if 2*sweep < cfg.Fold-1 {
			continue
		}
		n++
		all := float64(s.length) + float64(cfg.Topics)*float64(cfg.Alpha)
		for z, x := range s.doc {
			sums[z] += (float64(x) + float64(cfg.Alpha)) / all
		}
	}
	for z := range sums {
		sums[z] /= float64(max(n, 1))
	}
	return sums
}
