package experiment

import (
	"slices"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/job"
)

// A realRecorder keeps what each epoch of a run of real nodes took and did.
type realRecorder struct {
	program *program
	stop    chan struct{} // closed once the epochs do
	outcome outcome

	pids     []int // of the nodes' processes, each once
	computed time.Duration
	elapsed  time.Duration // of all epochs
}

// event takes an event of the run, unless the epochs so far do: the one that the end of the run
// cuts short is none. Like that of a simulated one, an evaluation lies between two epochs.
func (r *realRecorder) event(e job.Event) {
	select {
	case <-r.stop:
		return
	default:
	}
	switch {
	case e.Start != nil:
		for _, p := range e.Start.Nodes {
			if !slices.Contains(r.pids, p.PID) {
				r.pids = append(r.pids, p.PID)
			}
		}
		r.computed = r.processorTime()
	case e.Epoch != nil:
		r.ended(e.Epoch)
	case e.Evaluation != nil && len(r.outcome.epochs) > 0 && len(e.Evaluation.Metrics) > 0:
		o := &r.outcome
		o.metric, o.lower = e.Evaluation.Metrics[0].Name, e.Evaluation.LowerIsBetter
		o.epochs[len(o.epochs)-1].quality = e.Evaluation.Metrics[0].Value
		r.computed = r.processorTime()
	default:
		return
	}
	if enough := r.program.enough; enough != nil && (e.Evaluation != nil) == r.program.evaluated && len(r.outcome.epochs) > 0 && enough(r.outcome.epochs) {
		close(r.stop)
	}
}

// ended takes the end of an epoch.
func (r *realRecorder) ended(e *job.Epoch) {
	now := r.processorTime()
	took := time.Duration(e.Seconds * float64(time.Second))
	r.elapsed += took
	_, examples := r.program.work.task.Unit()
	r.outcome.epochs = append(r.outcome.epochs, entry{took: took, did: e.Stats, loss: e.Loss, examples: e.Items * examples,
		computed: now - r.computed, elapsed: r.elapsed, settled: r.elapsed})
	r.computed = now
}

// processorTime is that of all processes of the run; 0 where the system does not say.
func (r *realRecorder) processorTime() (t time.Duration) {
	for _, pid := range r.pids {
		if used, err := bench.ProcessorTimeOf(pid); err == nil { // an error: it has ended, or the system does not say
			t += used
		}
	}
	return t
}
