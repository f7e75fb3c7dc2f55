package linear

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Quality is the result of an evaluation on examples.
type Quality struct {
	Examples int64 // that the model was evaluated on
	// LogLoss is the mean of log(1 + e^(-y·m)), in nats.
	LogLoss float64
	// Accuracy is the share of examples whose margin has the sign of the label.
	Accuracy float64
	// AUC is the area under the ROC curve: the probability that a positive
	// example has a larger margin than a negative one. Margins are
	// compared in steps of 1/1024 and up to ±16, and equal ones count half; the error is
	// below the share of pairs that are so close. 1/2 where one class is missing.
	AUC float64
	// NonZero of the Used features, those that occur in training, have a weight
	// other than 0.
	NonZero, Used int64
}

// Sparsity is the share of used features whose weight is 0.
func (q Quality) Sparsity() float64 { return 1 - float64(q.NonZero)/float64(max(q.Used, 1)) }

func (q Quality) String() string {
	return fmt.Sprintf("log loss %.4f, accuracy %.4f, AUC %.4f on %d examples, %d of %d weights not zero",
		q.LogLoss, q.Accuracy, q.AUC, q.Examples, q.NonZero, q.Used)
}

func (q Quality) evaluation(split string) train.Evaluation {
	return train.Evaluation{
		LowerIsBetter: true,
		Metrics: []train.Metric{
			{Name: "log loss", Split: split, Value: q.LogLoss}, {Name: "AUC", Split: split, Value: q.AUC},
			{Name: "accuracy", Split: split, Value: q.Accuracy}, {Name: "sparsity", Split: split, Value: q.Sparsity()},
		},
	}
}

func (m *model) evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	set, split := m.data.Valid, "valid"
	if set.Len() == 0 {
		set, split = m.data.Test, "test"
	}
	q, err := m.EvaluateOn(ctx, env, fmt.Sprintf("%s after epoch %d", split, epoch), set)
	if err != nil {
		return train.Evaluation{}, err
	}
	return q.evaluation(split), nil
}

// EvaluateOn evaluates the model on a set, which all workers of all nodes divide among
// them. All nodes call it, each time with another name, when the updates of all
// workers are visible everywhere.
func (m *model) EvaluateOn(ctx context.Context, env *train.Env, name string, set *libsvm.Set) (Quality, error) {
	if set.Width > m.data.Train.Width {
		return Quality{}, fmt.Errorf("linear: evaluating features up to %d by weights up to %d", set.Width-1, m.data.Train.Width-1)
	}
	counts := make([]counts, len(env.Workers))
	err := env.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		k, err := m.keys(w.Model())
		if err != nil {
			return err
		}
		ev := &evaluator{gatherer: gatherer{m: m, keys: k, set: set}, w: w, counts: &counts[i]}
		from, to := env.Share(set.Len(), i)
		if err := ev.examples(ctx, from, to); err != nil {
			return err
		}
		from, to = env.Share(len(m.used), i)
		return ev.weights(ctx, m.used[from:to])
	})
	if err != nil {
		return Quality{}, err
	}
	for i := range counts[1:] {
		counts[0].add(&counts[i+1])
	}
	return m.together(ctx, env, name, &counts[0])
}

// together adds up the counts of all nodes.
func (m *model) together(ctx context.Context, env *train.Env, name string, c *counts) (Quality, error) {
	sum, err := env.Sum(ctx, "linear "+name, c.loss, float64(c.examples), float64(c.right), float64(c.nonZero))
	if err != nil {
		return Quality{}, err
	}
	all, err := env.Gather(ctx, "linear margins "+name, c.hist.encode())
	if err != nil {
		return Quality{}, err
	}
	var hist histogram
	for node, b := range all {
		if err := hist.decode(b); err != nil {
			return Quality{}, fmt.Errorf("linear: margins of node %d: %w", node, err)
		}
	}
	n := max(sum[1], 1)
	return Quality{
		Examples: int64(sum[1]), LogLoss: sum[0] / n, Accuracy: sum[2] / n, AUC: hist.auc(),
		NonZero: int64(sum[3]), Used: int64(len(m.used)),
	}, nil
}

// counts are the results of one worker.
type counts struct {
	loss                     float64
	examples, right, nonZero int64
	hist                     histogram
}

func (c *counts) add(o *counts) {
	c.loss += o.loss
	c.examples += o.examples
	c.right += o.right
	c.nonZero += o.nonZero
	c.hist.add(&o.hist)
}

type evaluator struct {
	gatherer
	w      godwit.Worker
	counts *counts

	batch Batch
	ks    []godwit.Key
	vals  []float32
	list  []int32
}

// chunk is how many examples, or weights, are pulled at once.
const chunk = 512

func (ev *evaluator) examples(ctx context.Context, from, to int) error {
	c := ev.counts
	for ; from < to; from += chunk {
		if err := ev.pull(ctx, from, min(from+chunk, to)); err != nil {
			return err
		}
		ev.forward(&ev.batch, ev.vals, func(positive bool, margin float32, _ []int32, _ []float32) {
			c.loss += logLoss(positive, margin)
			c.examples++
			if positive == (margin > 0) {
				c.right++
			}
			c.hist.count(positive, margin)
		})
	}
	return nil
}

func (ev *evaluator) weights(ctx context.Context, features []uint32) error {
	for len(features) > 0 {
		n := min(chunk, len(features))
		ev.ks = ev.ks[:0]
		for _, f := range features[:n] {
			ev.ks = append(ev.ks, ev.keys.weight+godwit.Key(f))
		}
		ev.vals = buffer.Sized(ev.vals, n*ev.m.dim)
		if err := ev.w.Pull(ctx, ev.ks, ev.vals); err != nil {
			return err
		}
		for i := range n {
			if ev.vals[i*ev.m.dim] != 0 {
				ev.counts.nonZero++
			}
		}
		features = features[n:]
	}
	return nil
}
