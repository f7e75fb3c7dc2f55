package train

import (
	"fmt"
	"strings"
)

// An Event reports what happened in a run: the end of an epoch, where Loss is set, or an
// evaluation, where Evaluation is set.
type Event struct {
	Epoch int // from 1 on
	// Loss is the sum over all nodes; nil where the event is an evaluation.
	Loss *Loss
	// Evaluation is what Evaluate returned; nil where the event is an epoch.
	Evaluation *Evaluation
}

// String returns a line for people.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d", e.Epoch)
	if e.Loss != nil {
		fmt.Fprintf(&b, ": loss %.4f over %d examples", e.Loss.Mean(), e.Loss.Examples)
	}
	if e.Evaluation != nil {
		for i, m := range e.Evaluation.Metrics {
			sep := ", "
			if i == 0 {
				sep = ": "
			}
			fmt.Fprintf(&b, "%s%s %.4f", sep, m.Label(), m.Value)
		}
		for _, w := range e.Evaluation.Warnings {
			fmt.Fprintf(&b, "; WARNING: %s", w)
		}
	}
	return b.String()
}
