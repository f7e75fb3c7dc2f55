package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/schedule"
)

// ErrDiverged is returned when the loss of an epoch is infinite or NaN: the model is
// unusable, and further training would not repair it.
var ErrDiverged = errors.New("training diverged: the loss is not finite; lower the learning rate")

// Options say how long a run lasts.
type Options struct {
	// Epochs is the number of passes over the data, at least 1.
	Epochs int
	// EvalEvery evaluates after every so many epochs, and always after the last.
	// 0 evaluates after the last only.
	EvalEvery int
	// Patience ends the run when so many evaluations in a row did not improve on
	// the best one. 0 never does.
	Patience int
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Epochs < 1:
		return setting.Bad("train.Options", "Epochs", o.Epochs, "at least 1")
	case o.EvalEvery < 0:
		return setting.Bad("train.Options", "EvalEvery", o.EvalEvery, "0 (after the last) or more epochs")
	case o.Patience < 0:
		return setting.Bad("train.Options", "Patience", o.Patience, "0 (never stop early) or more evaluations")
	case o.Patience > 0 && o.EvalEvery == 0:
		return setting.Bad("train.Options", "Patience", o.Patience, "evaluations to count: have the model evaluated every so many epochs, too (EvalEvery, --eval-every)")
	}
	return nil
}

// An End says why a run ended.
type End string

// The ends of a run that did not fail.
const (
	AllEpochs     End = "all epochs trained"
	NoImprovement End = "no improvement"     // for Options.Patience evaluations
	Stopped       End = "stopped on request" // by Env.Stop
)

// A Report sums up a run. The model is as the last epoch left it, which need
// not be the best one.
type Report struct {
	Epochs    int          // epochs trained; the last one may be cut short if End is Stopped
	End       End          // why the run ended
	Losses    []Loss       // of each epoch, over all nodes
	Evaluated []int        // the epochs that were evaluated
	Results   []Evaluation // the result of each
	Best      int          // index into Evaluated and Results
}

// A run is the state of Run. It belongs to the goroutine that called it; the
// pipelines belong to the goroutines that Each runs for their workers.
type run[D any] struct {
	env   *Env
	task  Task[D]
	opts  Options
	pipes []*pipeline[D]
	at    schedule.Position // where the run begins
	past  past
	desk  *desk // nil in a task without chunks
	own   *own  // nil in one with chunks
	rep   *Report
	// beside waits for the evaluation that takes place beside training; nil: there is none.
	beside func(context.Context) (*State, error)
}

// Run trains a task and returns when it is trained. Every node of the run calls
// it with the same task and options. The error is the first one of a worker, of
// an exchange or of the task, or the context's.
func Run[D any](ctx context.Context, env Env, task Task[D], o Options) (rep *Report, err error) {
	if err := env.check(); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &run[D]{env: &env, task: task, opts: o, rep: &Report{}}
	if env.Begin != nil {
		r.begin(env.Begin)
	}
	if r.at.First == 0 {
		r.at.First = r.rep.Epochs + 1
	}
	r.past.add(r.state())
	defer func() {
		r.unwatch()
		for _, p := range r.pipes {
			if cerr := p.close(); err == nil && cerr != nil {
				rep, err = nil, cerr
			}
		}
	}()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if r.rep.End != "" {
		if err := r.nothing(ctx); err != nil {
			return nil, err
		}
	}
	for r.rep.End == "" {
		if err := r.epoch(ctx); err != nil {
			return nil, err
		}
	}
	if r.desk != nil {
		if err := r.desk.close(ctx); err != nil {
			return nil, err
		}
	}
	return r.rep, nil
}

// start compares with the other nodes what is trained, and makes the trainers.
func (r *run[D]) start(ctx context.Context) error {
	what := fmt.Sprintf("%s; %+v; from epoch %d on, %+v", r.task.Fingerprint(), r.opts, r.rep.Epochs+1, r.at)
	payload := binary.LittleEndian.AppendUint32(nil, uint32(len(r.env.Workers)))
	all, err := r.env.Gather(ctx, "train start", append(payload, what...))
	if err != nil {
		return err
	}
	part, workers := Partition{Epochs: r.opts.Epochs}, []int(nil)
	for node, p := range all {
		if len(p) < 4 || string(p[4:]) != what {
			return fmt.Errorf("train: node %d trains something different from node %d: %q here, %q there; start all nodes with the same data and settings", node, r.env.Node, what, p[min(4, len(p)):])
		}
		n := int(binary.LittleEndian.Uint32(p))
		if node < r.env.Node {
			part.Index += n
		}
		part.Count += n
		workers = append(workers, n)
	}
	part.Nodes = len(all)
	if err := r.check(part.Count); err != nil {
		return err
	}
	if EvenSteps(r.task) {
		r.at = among(r.at, part.Count, part.Nodes)
	}
	chunks, nodes, from := r.task.Chunks(), len(all), source(nil)
	if chunks == 0 {
		r.own = newOwn(len(r.env.Workers), r.opts.Epochs, part, r.at, func(parts int) int { return StagesOf(r.task, parts) })
		nodes, from = 0, r.own
		if r.env.Node == 0 && r.env.Serve != nil {
			r.env.Serve(noDesk)
		}
	} else {
		r.desk = newDesk(r.env, schedule.Plan{Chunks: chunks, Epochs: r.opts.Epochs, Workers: workers, At: r.at})
		from = r.desk
	}
	age := ageOn(r.task, part.Nodes)
	if chunks > 0 { // of which a worker gets so many in an epoch, if all are equally fast
		age *= float64(chunks) / float64(part.Count)
	}
	for i, w := range r.env.Workers {
		p := &pipeline[D]{w: w, worker: i, from: from, nodes: nodes, chunks: chunks, age: age}
		r.pipes = append(r.pipes, p)
		p.rec.begin(r.rep.Epochs + 1)
		if p.t, err = r.trainer(w, part); err != nil {
			return fmt.Errorf("train: worker %d: %w", i, err)
		}
		if err := r.takeOver(p, part); err != nil {
			return fmt.Errorf("train: worker %d: %w", i, err)
		}
		part.Index++
	}
	return r.started(ctx)
}

// trainer makes a trainer, which hears of the losses of the run that this one goes on with.
func (r *run[D]) trainer(w godwit.Worker, part Partition) (Trainer[D], error) {
	t, err := r.task.Trainer(w, part)
	if a, ok := t.(Adjuster); ok && err == nil {
		for _, l := range r.rep.Losses {
			a.Adjust(l)
		}
	}
	return t, err
}

// takeOver makes the trainers by which a worker goes on with the parts of another number of workers, or nodes, in a task without chunks.
func (r *run[D]) takeOver(p *pipeline[D], part Partition) error {
	for _, e := range r.at.Epochs {
		if e.Parts == 0 || e.Parts == part.Count && (e.Nodes == part.Nodes || e.Nodes == 0) {
			continue
		}
		for i := part.Index; i < e.Parts; i += part.Count {
			t, err := r.trainer(p.w, Partition{Index: i, Count: e.Parts, Nodes: e.Nodes, Epochs: part.Epochs})
			if err != nil {
				return err
			}
			p.others = append(p.others, other[D]{e.Parts, e.Nodes, i, t})
		}
	}
	return nil
}

// started waits until all nodes are ready for cuts, if anybody wants to know.
func (r *run[D]) started(ctx context.Context) error {
	r.watch()
	if r.env.Started == nil {
		return nil
	}
	_, err := r.env.Gather(ctx, "train started", nil)
	if err == nil {
		r.env.Started()
	}
	return err
}

// check returns why the task cannot go on where an earlier run was.
func (r *run[D]) check(workers int) error {
	chunks := r.task.Chunks()
	err := r.at.Check(cmp.Or(chunks, workers))
	switch {
	case err != nil || len(r.at.Epochs) == 0:
	case chunks > 0:
		err = r.at.CheckDivision(chunks)
	default:
		err = CheckState(r.task, &State{Position: r.at})
		for _, e := range r.at.Epochs {
			if n := StagesOf(r.task, e.Parts); e.Parts > 0 && e.Stages != n {
				err = fmt.Errorf("it had divided epoch %d into %d stages of %d parts, and the task has %d stages", e.Epoch, e.Stages, e.Parts, n)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("train: the task cannot go on where an earlier run was: %w", err)
	}
	return nil
}

// epoch trains one epoch, evaluates if that is due, and decides whether it was the last.
// All decisions follow from exchanged values, so that all nodes decide alike.
func (r *run[D]) epoch(ctx context.Context) error {
	epoch := r.rep.Epochs + 1
	mine, err := r.train(ctx, epoch)
	if err == nil {
		err = r.settle(ctx)
	}
	if err != nil {
		return err
	}
	if e := r.at.Of(epoch); r.env.Node == 0 { // what an earlier run has trained of it
		mine.Sum, mine.Examples = mine.Sum+e.Loss(), mine.Examples+e.Examples
	}
	stop := 0.0
	if r.env.stopping() {
		stop = 1
	}
	sum, err := r.env.Sum(ctx, fmt.Sprintf("epoch %d", epoch), mine.Sum, float64(mine.Examples), stop)
	if err != nil {
		return err
	}
	loss := Loss{sum[0], int64(sum[1])}
	if sum[2] > 0 && loss.Examples == 0 {
		return r.stopBetween(ctx)
	}
	r.rep.Epochs = epoch
	r.rep.Losses = append(r.rep.Losses, loss)
	if math.IsNaN(loss.Sum) || math.IsInf(loss.Sum, 0) {
		return fmt.Errorf("train: epoch %d: %w", epoch, ErrDiverged)
	}
	r.env.progress(Event{Epoch: epoch, Loss: &loss}) // a number, so that it can be written as JSON
	for _, p := range r.pipes {
		for t := range p.trainers {
			if a, ok := t.(Adjuster); ok {
				a.Adjust(loss)
			}
		}
	}
	switch {
	case sum[2] > 0:
		if err := r.stopped(ctx); err != nil {
			return err
		}
	case epoch == r.opts.Epochs:
		r.rep.End = AllEpochs
	}
	if r.rep.End != "" || r.opts.EvalEvery > 0 && epoch%r.opts.EvalEvery == 0 {
		beside, err := r.evaluate(ctx, epoch)
		if err != nil || beside {
			return err
		}
	}
	s := r.state()
	r.past.add(s)
	if s.End == Stopped {
		return nil // Env was told before the evaluation
	}
	return r.ended(ctx, s)
}

// ended tells Env of an epoch that was trained whole, or of the end.
func (r *run[D]) ended(ctx context.Context, s *State) error {
	if r.env.EpochEnd == nil {
		return nil
	}
	return r.env.EpochEnd(ctx, s)
}

// stopped ends a run that was asked to stop, and tells Env what was trained, before the evaluation: a run that goes on there finds the
// epoch under way, and evaluates it when it has ended, also if nothing of it is left to train.
func (r *run[D]) stopped(ctx context.Context) error {
	r.rep.End = Stopped
	s, err := r.here()
	if err != nil {
		return err
	}
	s.End = Stopped
	return r.ended(ctx, s)
}

// nothing evaluates the last epoch, where the run before was to train more and did not, and tells Env that there was nothing to train.
func (r *run[D]) nothing(ctx context.Context) error {
	if err := r.evaluateLast(ctx); err != nil {
		return err
	}
	r.past.replace(r.state())
	s, err := r.here()
	if err != nil {
		return err
	}
	s.End = r.rep.End
	return r.ended(ctx, s)
}

// stopBetween ends a run that was asked to stop before a step of the next epoch was
// trained.
func (r *run[D]) stopBetween(ctx context.Context) error {
	r.rep.End = Stopped
	if err := r.ended(ctx, r.state()); err != nil {
		return err
	}
	return r.evaluateLast(ctx)
}

// evaluateLast evaluates the model behind the last epoch of a run that has ended, unless that was done.
func (r *run[D]) evaluateLast(ctx context.Context) error {
	if n := len(r.rep.Evaluated); n > 0 && r.rep.Evaluated[n-1] == r.rep.Epochs {
		return nil
	}
	_, err := r.evaluate(ctx, r.rep.Epochs)
	return err
}

// train runs one epoch on all workers of this node.
func (r *run[D]) train(ctx context.Context, epoch int) (Loss, error) {
	losses := make([]Loss, len(r.pipes))
	together := InLockstep(r.task)
	handover := HandsOver(r.task) && r.env.nodes() > 1
	err := r.env.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		p := r.pipes[i]
		p.rec.begin(epoch)
		stages := 0
		if r.own != nil {
			p.begun, stages = r.own.span(epoch)
		}
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !together && r.env.stopping() {
				break
			}
			b, err := p.next(ctx, epoch)
			if err != nil {
				return err
			}
			if b == nil {
				break
			}
			l, err := p.training().Step(ctx, b)
			if err != nil {
				return err
			}
			p.done(l)
			losses[i].Sum += l.Sum
			losses[i].Examples += l.Examples
			if r.env.Seen != nil {
				r.env.Seen.Add(l.Examples)
			}
		}
		if err := p.meet(ctx, stages); err != nil { // those of which this worker has no part
			return err
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
		if w.Model().Bounded() {
			// Others must not wait for a worker with fewer steps, and all begin the next
			// epoch together.
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		if handover {
			if err := w.SyncAll(ctx); err != nil {
				return err
			}
		}
		if c, ok := w.(godwit.Cutter); ok {
			c.Rest() // a cut does not wait for it
		}
		return nil
	})
	var all Loss
	for _, l := range losses {
		all.Sum += l.Sum
		all.Examples += l.Examples
	}
	return all, err
}

// evaluate evaluates the model once every update is visible everywhere, and ends the run
// after Patience evaluations without improvement. Beside says that the evaluation takes place while training goes on, and
// that Env knows of the end of the epoch.
func (r *run[D]) evaluate(ctx context.Context, epoch int) (beside bool, err error) {
	if err := r.env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error { return w.SyncAll(ctx) }); err != nil {
		return false, err
	}
	if beside, err = r.evaluateBeside(ctx); err != nil || beside {
		return beside, err
	}
	s := r.state()
	if err := r.judge(ctx, r.env, s); err != nil {
		return false, err
	}
	r.take(s)
	r.env.progress(Event{Epoch: epoch, Evaluation: &s.Results[len(s.Results)-1]})
	r.losePatience()
	return false, nil
}

// losePatience ends the run after Patience evaluations without improvement.
func (r *run[D]) losePatience() {
	if rep := r.rep; rep.End == "" && r.opts.Patience > 0 && len(rep.Results)-1-rep.Best >= r.opts.Patience {
		rep.End = NoImprovement
	}
}

// better reports whether a is a better evaluation than b. NaN is never better.
func better(a, b *Evaluation) bool {
	x, y := a.Metrics[0].Value, b.Metrics[0].Value
	if math.IsNaN(y) {
		return !math.IsNaN(x)
	}
	if a.LowerIsBetter {
		return x < y
	}
	return x > y
}
