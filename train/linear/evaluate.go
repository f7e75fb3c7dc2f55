package linear

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Quality is the result of an evaluation on examples.
type Quality struct {
	Examples int64 // that the model was evaluated on
	// Classes is how many there are; 0 if the model predicts values.
	Classes int
	// LogLoss is the mean of -log p of the right class, in nats. 0 where there are no
	// classes.
	LogLoss float64
	// Accuracy is the share of examples whose class is the most probable one. 0 where there
	// are no classes.
	Accuracy float64
	// AUC is the area under the ROC curve: the probability that a positive
	// example has a larger margin than a negative one. Margins are
	// compared in steps of 1/1024 and up to ±16, and equal ones count half; the error is
	// below the share of pairs that are so close. 1/2 where one class is missing, 0 if
	// there are not two.
	AUC float64
	// MacroF1 is the mean over the classes, all alike, of the harmonic mean of precision and
	// recall, which is 0 for a class that is neither there nor predicted. 0 where there are
	// less than three classes.
	MacroF1 float64
	// RMSE and MAE are the root of the mean squared error and the mean absolute error, in the
	// units of the labels. R2 is the share of the labels' variance that the model explains:
	// 0 of their mean, negative where the model is worse. All are 0 where there are classes.
	RMSE, MAE, R2 float64
	// NonZero of the Used weights, those of features that occur in training, are
	// other than 0.
	NonZero, Used int64
}

// Sparsity is the share of used weights that are 0.
func (q Quality) Sparsity() float64 { return 1 - float64(q.NonZero)/float64(max(q.Used, 1)) }

// Metrics returns the figures, the first of which decides, and whether that is an error.
func (q Quality) Metrics() (ms []train.Metric, lowerIsBetter bool) {
	switch q.Classes {
	case 0:
		ms = []train.Metric{{Name: "RMSE", Value: q.RMSE}, {Name: "MAE", Value: q.MAE}, {Name: "R2", Value: q.R2}}
	case 2:
		ms = []train.Metric{{Name: "log loss", Value: q.LogLoss}, {Name: "AUC", Value: q.AUC}, {Name: "accuracy", Value: q.Accuracy}}
	default:
		ms = []train.Metric{{Name: "log loss", Value: q.LogLoss}, {Name: "accuracy", Value: q.Accuracy}, {Name: "macro F1", Value: q.MacroF1}}
	}
	return append(ms, train.Metric{Name: "sparsity", Value: q.Sparsity()}), true
}

func (q Quality) String() string {
	var b strings.Builder
	ms, _ := q.Metrics()
	for _, x := range ms[:len(ms)-1] {
		fmt.Fprintf(&b, "%s %.4f, ", x.Name, x.Value)
	}
	return strings.TrimSuffix(b.String(), ", ") + fmt.Sprintf(" on %d examples, %d of %d weights not zero", q.Examples, q.NonZero, q.Used)
}

func (q Quality) evaluation(split string) (ev train.Evaluation) {
	ev.Metrics, ev.LowerIsBetter = q.Metrics()
	for i := range ev.Metrics {
		ev.Metrics[i].Split = split
	}
	return ev
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
	all := make([]counts, len(env.Workers))
	err := env.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		k, err := m.keys(w.Model())
		if err != nil {
			return err
		}
		all[i] = newCounts(m.classes)
		ev := &evaluator{gatherer: newGatherer(m, k, set), w: w, counts: &all[i]}
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
	for i := range all[1:] {
		all[0].add(&all[i+1])
	}
	return m.together(ctx, env, name, &all[0])
}

// together adds up the counts of all nodes.
func (m *model) together(ctx context.Context, env *train.Env, name string, c *counts) (Quality, error) {
	sums, err := env.Sum(ctx, "linear "+name, c.sums...)
	if err != nil {
		return Quality{}, err
	}
	q := Quality{Classes: m.classes, Examples: int64(sums[examples]), NonZero: int64(sums[nonZero]), Used: int64(len(m.used) * m.outputs())}
	n := max(sums[examples], 1)
	if m.classes == 0 {
		q.RMSE, q.MAE = math.Sqrt(sums[squares]/n), sums[absolute]/n
		if spread := sums[labels2] - sums[labels1]*sums[labels1]/n; spread > 0 {
			q.R2 = 1 - sums[squares]/spread
		}
		return q, nil
	}
	q.LogLoss, q.Accuracy = sums[loss]/n, sums[right]/n
	if m.classes > 2 {
		q.MacroF1 = macroF1(sums[ofClasses:])
		return q, nil
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
	q.AUC = hist.auc()
	return q, nil
}

// The sums of an evaluation. Of values, labels1 and labels2 are those of the labels, less
// the center, and of their squares. Of more than two classes, each has three sums from ofClasses on.
const (
	examples = iota
	nonZero
	loss
	right
	ofClasses
	squares  = loss
	absolute = right
	labels1  = ofClasses
	labels2  = labels1 + 1
)

// The sums of a class.
const (
	actual = iota
	predicted
	both
	ofClass // how many
)

// macroF1 is the mean of the classes' F1.
func macroF1(sums []float64) (mean float64) {
	n := len(sums) / ofClass
	for c := range n {
		s := sums[c*ofClass : (c+1)*ofClass]
		mean += 2 * s[both] / max(s[actual]+s[predicted], 1)
	}
	return mean / float64(n)
}

// counts are the results of one worker.
type counts struct {
	sums []float64
	hist *histogram // of two classes
}

func newCounts(classes int) counts {
	switch classes {
	case 0:
		return counts{sums: make([]float64, labels2+1)}
	case 2:
		return counts{make([]float64, ofClasses), new(histogram)}
	}
	return counts{sums: make([]float64, ofClasses+classes*ofClass)}
}

func (c *counts) add(o *counts) {
	for i, x := range o.sums {
		c.sums[i] += x
	}
	if c.hist != nil {
		c.hist.add(o.hist)
	}
}

// count counts an example.
func (c *counts) count(t *target, label float32, margins []float32) {
	s := c.sums
	s[examples]++
	switch t.classes {
	case 0:
		off, y := t.value(margins[0])-float64(label), float64(label)-t.center
		s[squares] += off * off
		s[absolute] += math.Abs(off)
		s[labels1] += y
		s[labels2] += y * y
	case 2:
		positive := label > 0
		if positive == (margins[0] > 0) {
			s[right]++
		}
		c.hist.count(positive, margins[0])
		s[loss] += t.loss(label, margins)
	default:
		is, said := int(label), mostProbable(margins)
		if is == said {
			s[right]++
			s[ofClasses+is*ofClass+both]++
		}
		s[ofClasses+is*ofClass+actual]++
		s[ofClasses+said*ofClass+predicted]++
		s[loss] += t.loss(label, margins)
	}
}

func mostProbable(margins []float32) (class int) {
	for c, m := range margins {
		if m > margins[class] {
			class = c
		}
	}
	return class
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
	for ; from < to; from += chunk {
		if err := ev.pull(ctx, from, min(from+chunk, to)); err != nil {
			return err
		}
		ev.forward(&ev.batch, ev.vals, func(_ int, labels, margins []float32) {
			n := ev.m.outputs()
			for i, y := range labels {
				ev.counts.count(&ev.m.target, y, margins[i*n:(i+1)*n])
			}
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
			for _, w := range ev.vals[i*ev.m.dim:][:ev.m.outputs()] {
				if w != 0 {
					ev.counts.sums[nonZero]++
				}
			}
		}
		features = features[n:]
	}
	return nil
}
