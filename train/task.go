package train

import (
	"context"

	"github.com/godwit-ps/godwit"
)

// A Task is what a run trains: a model, data and an evaluation. D is the task's own
// data of a batch.
type Task[D any] interface {
	// Fingerprint identifies the settings and the data. Run fails if it differs between
	// nodes.
	Fingerprint() string
	// Trainer returns worker w's share of the work. Run calls it once a worker,
	// one after the other.
	Trainer(w godwit.Worker, part Partition) (Trainer[D], error)
	// Evaluate evaluates the model. All nodes call it at the same point, when the
	// updates of all workers are visible everywhere, and must return the same
	// metrics.
	Evaluate(ctx context.Context, env *Env, epoch int) (Evaluation, error)
}

// A Lockstep is a [Task] whose workers wait for each other within an epoch. So none may
// leave an epoch early: a run that is asked to stop ends with the epoch.
type Lockstep interface {
	// Lockstep reports whether they do.
	Lockstep() bool
}

// InLockstep reports whether a task, of whatever batches, is a [Lockstep] that
// says so.
func InLockstep(task any) bool {
	l, ok := task.(Lockstep)
	return ok && l.Lockstep()
}

// A Partition names the data of one worker: part Index of Count equal parts, one for
// each worker of the run.
type Partition struct {
	Index, Count int // Index is 0 … Count-1
	// Epochs is how many the run trains if it does not end early, for what changes
	// during the run, such as a learning rate.
	Epochs int
}

// A Trainer is one worker's share of a task. Its methods are called by one
// goroutine at a time. One that is an [io.Closer] is closed when the run is over,
// however it ends.
type Trainer[D any] interface {
	// Steps is the number of batches of every epoch; none is fine.
	Steps() int
	// Load fills b with batch step (0 … Steps()-1) of the epoch (1, 2, …): its
	// distinct keys, its samples, SyncAll, and its data. b holds an earlier batch, whose
	// memory should be reused. Batches are loaded in order, far ahead of Step.
	Load(b *Batch[D], epoch, step int)
	// Step trains b. It returns the loss summed over examples. b.Sample is
	// prepared; Run finishes it and advances the clock afterwards.
	Step(ctx context.Context, b *Batch[D]) (Loss, error)
}

// An Adjuster is a [Trainer] that gets the loss of each epoch, summed over all nodes,
// before the next epoch begins. All trainers of the run get the same loss.
type Adjuster interface {
	// Adjust is called once an epoch, between two steps.
	Adjust(epoch Loss)
}

// A Flusher is a [Trainer] that gathers updates over several steps.
type Flusher interface {
	// Flush hands all of them on. It is called once an epoch, by the goroutine of Step,
	// after the last step that is made: a run that is asked to stop may make fewer.
	Flush(ctx context.Context) error
}

// A Batch is the work of one step.
type Batch[D any] struct {
	// Keys are what the step will pull and push. Run signals the intent.
	Keys []godwit.Key
	// Samples is how many samples of sampler Sampler the step will pull; 0 prepares
	// none.
	Sampler, Samples int
	// SyncAll has Run call [SyncAll] before the step, so that all workers of the run
	// wait for each other until what each has trained is visible to all. Batches after
	// it are announced only then. All trainers must have the same number of such batches
	// in an epoch, and the task must be a [Lockstep].
	SyncAll bool
	// Sample names the prepared samples. Run sets it.
	Sample godwit.SampleID
	// Data is the task's own.
	Data D
}

// A Loss is a sum of losses over examples.
type Loss struct {
	Sum      float64 // over the examples
	Examples int64   // how many
}

// Mean returns the loss per example, 0 where there are none.
func (l Loss) Mean() float64 {
	if l.Examples == 0 {
		return 0
	}
	return l.Sum / float64(l.Examples)
}

// A Metric is one figure of an evaluation.
type Metric struct {
	Name string // such as "RMSE"
	// Split is the part of the data that it was measured on, "valid" or "train"; empty: the test
	// data.
	Split string
	Value float64 // in the units of the figure; a share is 0 … 1
}

// Label is the name, with the split before it.
func (m Metric) Label() string {
	if m.Split == "" {
		return m.Name
	}
	return m.Split + " " + m.Name
}

// An Evaluation is the result of evaluating a model.
type Evaluation struct {
	// Metrics holds at least one metric; the first decides which epoch is best.
	Metrics []Metric
	// LowerIsBetter says that a lower first metric is better, as of an error.
	LowerIsBetter bool
	// Warnings are warnings for the user, a sentence each.
	Warnings []string
}
