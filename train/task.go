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
	// Chunks is into how many chunks each epoch is divided, of numbers from 0 on. It
	// follows from data and settings alone (see [schedule.Cut]), not from who trains. Who
	// trains which chunk is decided while the run goes on, so nothing else may follow from
	// that.
	//
	// 0 says that the task needs an order of its own: each worker has its part of the data,
	// the same in each epoch, as one chunk.
	Chunks() int
	// Trainer returns the trainer of worker w. Run calls it once a worker, one after the
	// other. Part matters to tasks without chunks.
	Trainer(w godwit.Worker, part Partition) (Trainer[D], error)
	// Evaluate evaluates the model. All nodes call it at the same point, when the
	// updates of all workers are visible everywhere, and must return the same
	// metrics.
	Evaluate(ctx context.Context, env *Env, epoch int) (Evaluation, error)
}

// A Lockstep is a [Task] whose workers wait for each other within an epoch. So none may
// leave an epoch early: a run that is asked to stop ends with the epoch. It has no chunks.
type Lockstep interface {
	// Lockstep reports whether they do.
	Lockstep() bool
}

// A Staged is a [Lockstep] whose epochs have stages. Run calls [godwit.Worker.SyncAll] at the begin of each, so that all workers wait
// for each other until what each has trained is visible to all, and announces the batches of a stage only then. So
// it is enough that no two parts of a stage train the same rows. Workers of other Lockstep tasks wait for each other by themselves: each makes
// equally many steps in an epoch, and a run can go on only where all have made equally many.
type Staged interface {
	// Stages returns how many an epoch has, if the data is divided into so many parts; 0: none.
	Stages(parts int) int
}

// StagesOf returns the stages of a task, of whatever batches; 0 if it is not a [Staged].
func StagesOf(task any, parts int) int {
	if s, ok := task.(Staged); ok {
		return s.Stages(parts)
	}
	return 0
}

// InLockstep reports whether a task, of whatever batches, is a [Lockstep] that
// says so.
func InLockstep(task any) bool {
	l, ok := task.(Lockstep)
	return ok && l.Lockstep()
}

// A Partition is a worker's place among those of the run. A task that divides its epochs
// into chunks has no use for Index and Count: any worker may get any chunk. In another one,
// the worker has part Index of Count equal parts of the data, one for each worker of the run.
type Partition struct {
	Index, Count int // Index is 0 … Count-1
	// Nodes is how many nodes the run has that divides the data so. The steps of a part may depend on it: a run that goes on with an
	// epoch of which another one has trained something makes the trainer of that run's partition. 0: nobody knows.
	Nodes int
	// Epochs is how many the run trains if it does not end early, for what changes
	// during the run, such as a learning rate.
	Epochs int
}

// An At names a step of a run.
type At struct {
	Epoch int // from 1 on
	// Chunk is that of the epoch, from 0 on; in a task without chunks the worker's Partition.Index, and of a [Staged] that
	// plus the stage, from 0 on, times Partition.Count.
	Chunk int
	Step  int // of the chunk, from 0 on
	// Progress is how far the epoch is, 0 … 1, about. In a run of one worker it is exact.
	Progress float64
}

// Seed returns the seeds of a generator (rand.NewPCG) whose numbers follow from a seed, the
// epoch, the chunk and the step, and so from nothing else.
func (a At) Seed(seed uint64) (uint64, uint64) {
	return mixed(seed + uint64(a.Step)*0x9e3779b97f4a7c15), mixed(uint64(a.Epoch)<<32 | uint64(uint32(a.Chunk)))
}

// mixed is the finalizer of SplitMix64: numbers that are near each other give numbers that
// have nothing in common.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A Trainer trains one worker's chunks. Its methods are called by one
// goroutine at a time. One that is an [io.Closer] is closed when the run is over,
// however it ends.
type Trainer[D any] interface {
	// Steps is the number of batches of a chunk of an epoch; none is fine. The chunks of an epoch are asked for before those of
	// the next.
	Steps(epoch, chunk int) int
	// Load fills b with a batch: its distinct keys, its samples, and its data. b
	// holds an earlier batch, whose memory should be reused. The batches of a chunk are
	// loaded in order, from the first on, and no others between them, far ahead of Step.
	// Whatever is drawn must follow from the chunk: see [At.Seed].
	Load(b *Batch[D], at At)
	// Step trains b. It returns the loss summed over examples. b.Sample is
	// prepared; Run finishes it and advances the clock afterwards. Steps are made in the order
	// of Load, but some batches that were loaded may not be trained.
	Step(ctx context.Context, b *Batch[D]) (Loss, error)
}

// A Handover is a [Task] that keeps state of its examples in rows. Between two epochs all
// workers of a run of several nodes then wait until what each has pushed is visible to all, so
// that whoever gets a chunk reads what was pushed for it.
type Handover interface {
	// Handover reports whether it does.
	Handover() bool
}

// HandsOver reports whether a task, of whatever batches, is a [Handover] that says so.
func HandsOver(task any) bool {
	h, ok := task.(Handover)
	return ok && h.Handover()
}

// An Adjuster is a [Trainer] that gets the loss of each epoch, summed over all nodes,
// before the next epoch begins. All trainers of the run get the same loss.
type Adjuster interface {
	// Adjust is called once an epoch, between two steps.
	Adjust(epoch Loss)
}

// A Flusher is a [Trainer] that gathers updates over several steps, or does not wait for those of a step within it.
type Flusher interface {
	// Flush hands all of them on, and waits for them. It is called once an epoch, by the goroutine of Step,
	// after the last step that is made: a run that is asked to stop may make fewer.
	Flush(ctx context.Context) error
	// Held is of how many steps, the last ones, it has updates that are not pushed yet. A run
	// that goes on from a cut makes them again.
	Held() int
}

// A Batch is the work of one step.
type Batch[D any] struct {
	// Keys are what the step will pull and push. Run signals the intent.
	Keys []godwit.Key
	// Samples is how many samples of sampler Sampler the step will pull; 0 prepares
	// none.
	Sampler, Samples int
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
