//go:build !race

package linear

// Training to the end shows the race detector nothing that the short runs of
// the other tests do not.

import (
	"math"
	"testing"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
)

func TestBothRulesReachThePublishedAccuracyOfA9aOnOneAndFourNodes(t *testing.T) {
	data := realData(t, "a9a/a9a.gz", libsvm.Share{Valid: 20})
	for _, rule := range Rules() {
		for _, nodes := range []int{1, 4} {
			c := DefaultConfig()
			c.Rule = rule
			task := newTask(t, c, data)
			_, envs := trained[Batch](t, task, nodes, train.Options{Epochs: 5})
			q := evaluatedBy(t, task.model, envs, data.Test)
			t.Logf("%s on %d nodes: %v", rule, nodes, q)
			if q.Accuracy < 0.845 {
				t.Errorf("%s on %d nodes: accuracy %.4f, want at least 0.845", rule, nodes, q.Accuracy)
			}
		}
	}
}

func TestBlocksReachItTooAndTheSameOnBoth(t *testing.T) {
	data := realData(t, "a9a/a9a.gz", libsvm.Share{Valid: 20})
	var qs []Quality
	for _, nodes := range []int{1, 4} {
		task := newBlocks(t, DefaultBlockConfig(), data)
		r, envs := trained[Turn](t, task, nodes, train.Options{Epochs: 20})
		q := evaluatedBy(t, task.model, envs, data.Test)
		t.Logf("on %d nodes: %v; the objective begins the last pass at %.5f", nodes, q, r[0].Losses[19].Mean())
		qs = append(qs, q)
	}
	if qs[0].Accuracy < 0.845 || math.Abs(qs[0].LogLoss-qs[1].LogLoss) > 1e-5 {
		t.Errorf("%v on one node and %v on four, want an accuracy of 0.845 and the same on both", qs[0], qs[1])
	}
}

// The training file of the set is not to be had, so the validation file is split.
func TestFactorsFindWhatALinearModelCannotOnFrappe(t *testing.T) {
	data := realData(t, "frappe/frappe.validation.libfm.gz", libsvm.Share{Valid: 20, Test: 5})
	var qs []Quality
	for _, factors := range []int{0, 16} {
		c := DefaultConfig()
		c.Factors = factors
		task := newTask(t, c, data)
		_, envs := trained[Batch](t, task, 1, train.Options{Epochs: 6})
		qs = append(qs, evaluatedBy(t, task.model, envs, data.Test))
		t.Logf("%d factors: %v", factors, qs[len(qs)-1])
	}
	if qs[1].Accuracy < 0.9 || qs[1].LogLoss > qs[0].LogLoss-0.01 {
		t.Errorf("%v with factors, %v without; want an accuracy of 0.9 and less loss by 0.01", qs[1], qs[0])
	}
}
