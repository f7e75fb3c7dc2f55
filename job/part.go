package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/flight"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
	"github.com/godwit-ps/godwit/transport"
)

// A part is one node's part in a run, from the sealed membership to the result.
// It belongs to the goroutine that runs it, but for emit.
type part struct {
	spec    *Spec
	cfg     *NodeConfig
	run     string
	begin   time.Time
	task    task.Task
	session coord.Session

	node      *node.Node
	record    *recorder        // of what the node does; nil: none
	flight    *flight.Recorder // of the process's last seconds; nil: none
	env       train.Env
	attendant Attendant     // of the node; nil: none
	cuts      *cuts.Owner   // nil: there are no checkpoints, and none is evaluated beside training
	leader    godwit.NodeID // of cuts
	relay     *relaying     // nil: nodes send the leader no rows
	begun     bool          // all nodes have met
	seen      atomic.Int64  // examples that this node trained
	lastCut   uint64        // the number of the last cut, where there are no checkpoints
	tight     bool          // the memory did not suffice to evaluate beside training, and that was told

	emitting sync.Mutex // held while an event is handed on, and by who has metrics
	cancel   context.CancelCauseFunc

	best    uint64   // the checkpoint whose model is better than the last one; 0: none
	lacking []string // warnings of what the model that training began with lacks

	result  Result
	metrics map[string]Metrics // of the last evaluation, by split
	trained int64              // examples that were trained before the epoch, by all nodes
	before  int64              // what seen was then
	mark    node.Stats         // of all nodes when the epoch began
	epochAt time.Time          // it began
	spare   spare              // what evaluations take, and processors could do
}

// newPart returns the part of a node that has joined.
func newPart(spec *Spec, cfg *NodeConfig, run string, begin time.Time, t task.Task, s coord.Session) *part {
	return &part{spec: spec, cfg: cfg, run: run, begin: begin, task: t, session: s}
}

// execute trains and leaves the run. A network and a listener are needed by a run
// of several nodes. The session is left, but not closed. An error that this
// node has is told to the others.
func (p *part) execute(ctx context.Context, nw transport.Network, l transport.Listener) (r *Result, err error) {
	defer func() {
		p.endDiary(err)
		p.flight.Close()
	}()
	err = p.open(ctx, nw, l)
	if err == nil {
		err = p.work(ctx)
	}
	if err == nil {
		err = p.close(ctx)
	}
	if err == nil && p.best > 0 {
		err = p.takeBest(ctx)
	}
	if err == nil {
		p.emit(Event{Result: &p.result})
		return &p.result, nil
	}
	if p.stoppedBeforeStart() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel() // nobody is waited for
		err = ErrInterrupted
	} else if err = p.cause(err); p.session.Err() == nil {
		p.session.Fail(err)
	}
	if p.begun {
		p.failed(err)
	}
	if p.node != nil || p.record != nil {
		// That another node failed, too, ends the node's goodbye, and is not why this one ends.
		if cerr := p.close(ctx); cerr != nil && !errors.Is(err, cerr) && !errors.Is(cerr, coord.ErrFailed) {
			err = errors.Join(err, cerr)
		}
	}
	return nil, err
}

// stoppedBeforeStart reports whether the run was asked to stop before all nodes had met.
// An error that a node meets then only says that another one left earlier.
func (p *part) stoppedBeforeStart() bool { return !p.begun && p.session.StopReason() != "" }

// cause returns the reason for the end of the run that the session knows, where
// it knows one: the error of an operation is often its consequence. What this node has found
// itself is none, though another node may have told of it before.
func (p *part) cause(err error) error {
	if errors.Is(err, godwit.ErrMemory) || errors.Is(err, train.ErrDiverged) || errors.Is(err, errNotRestored) {
		return err
	}
	if p.session.Err() == nil && errors.Is(err, godwit.ErrPeerLost) {
		// The other nodes are about to report what happened to the peer.
		select {
		case <-p.session.Done():
		case <-time.After(causeGrace):
		}
	}
	if cause := p.session.Err(); cause != nil {
		err = cause
	}
	return p.recorded(err)
}

// recorded has the error of who lost a node say where is written what the process did before, or why it is not, if that is kept.
func (p *part) recorded(err error) error {
	if !errors.Is(err, godwit.ErrPeerLost) {
		return err
	}
	path := p.flight.Write()
	if why := p.flight.Err(); path == "" && why != nil && !strings.Contains(err.Error(), why.Error()) {
		return fmt.Errorf("%w (what this process did before could not be written: %v)", err, why)
	}
	if path == "" || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%w (for what this process did before: go tool trace %s)", err, path)
}

const causeGrace = time.Second

// open starts the node, within the time that nodes have to join.
func (p *part) open(ctx context.Context, nw transport.Network, l transport.Listener) error {
	filters, err := filter.Parse(p.spec.Filters)
	if err != nil {
		return err
	}
	tables := filter.On(p.task.Tables(), filters...)
	for i := range tables {
		tables[i].Staleness = p.spec.Staleness
	}
	model, err := godwit.NewModel(tables...)
	if err != nil {
		return err
	}
	policy, err := placement.ByName(p.spec.Policy)
	if err != nil {
		return err
	}
	if err := p.beginTrace(model); err != nil {
		return err
	}
	if err := p.beginFlight(); err != nil {
		return err
	}
	starting, end := p.starting(ctx)
	defer end()
	p.node, err = node.Start(starting, node.Config{
		Model: model, Policy: policy, Seed: p.spec.Seed, Samplers: p.task.Samplers(), Workers: p.cfg.workers(p.spec),
		Session: p.session, Network: nw, Listener: l, Run: p.run, Trace: p.record.traceOf(), Flight: p.flight, OneClock: train.EvenSteps(p.task),
	})
	if err != nil {
		return causeOf(starting, err)
	}
	if err := p.beginSamples(); err != nil {
		return err
	}
	return p.attend()
}

// starting returns a context for the start of the node. It ends after the time to
// join, with ErrInterrupted when the run is to stop, which it announces to the others, and
// with a leaderError when the leader is gone. Its end waits for who watches that.
func (p *part) starting(ctx context.Context) (context.Context, func()) {
	limited, stop := context.WithTimeout(ctx, p.spec.Join)
	ctx, cancel := context.WithCancelCause(limited)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.cfg.Stop:
			_ = p.requestStop(ctx) // if it cannot be told, the run ends all the same
			cancel(ErrInterrupted)
		case <-p.session.Stopping():
			cancel(ErrInterrupted)
		case <-p.cfg.leaderGone:
			cancel(p.cfg.leaderErr)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); watch.Wait(); stop() }
}

// requestStop asks all nodes to end the run early.
func (p *part) requestStop(ctx context.Context) error {
	return p.session.RequestStop(ctx, fmt.Sprintf("interrupted at node %d", p.session.Self()))
}

// work does everything between the start of the node and its end.
func (p *part) work(ctx context.Context) error {
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	watched := p.watch(ctx)
	defer func() { p.cancel(nil); watched.Wait() }()

	p.env = train.Env{
		Workers: p.node.Workers(), Node: int(p.session.Self()), Nodes: len(p.session.Members()),
		Exchange: p.session.Exchange, Stop: p.session.Stopping(), Progress: func(e train.Event) { p.progress(ctx, e) },
		Ask: func(question []byte, deliver func([]byte)) func(context.Context) error {
			return p.node.Ask(0, question, deliver)
		},
		Serve: p.serve, Fork: p.fork,
	}
	if err := p.cut(ctx); err != nil {
		return err
	}
	if err := p.initialize(ctx); err != nil {
		return err
	}
	if err := p.introduce(ctx); err != nil {
		return err
	}
	if err := p.sendRecord(ctx); err != nil {
		return err
	}
	p.ready()
	rep, err := p.trainAndSave(ctx)
	if err != nil {
		return err
	}
	return p.finish(ctx, rep)
}

// trainAndSave trains while cuts are made, and returns when the last one has ended.
func (p *part) trainAndSave(ctx context.Context) (*train.Report, error) {
	if p.cuts == nil {
		return p.train(ctx)
	}
	saving, cancel := context.WithCancel(ctx)
	var owner sync.WaitGroup
	owner.Go(func() {
		if err := p.cuts.Run(saving); err != nil && saving.Err() == nil {
			p.cancel(err)
		}
	})
	defer func() { cancel(); owner.Wait() }()
	rep, err := p.train(ctx)
	if err != nil {
		return nil, err
	}
	p.rest() // the last cut need not spare workers
	return rep, p.cuts.Finish(ctx)
}

// watch passes on requests to stop, ends the work when the run is over, and emits
// ticks, until ctx ends.
func (p *part) watch(ctx context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-p.cfg.Stop:
			if err := p.requestStop(ctx); err != nil && ctx.Err() == nil {
				p.cancel(err)
			}
		case <-ctx.Done():
		}
	})
	wg.Go(func() {
		select {
		case <-p.session.Stopping():
			p.emit(Event{Stopping: p.session.StopReason()})
		case <-ctx.Done():
		}
	})
	wg.Go(func() {
		select {
		case <-p.node.Done():
			p.cancel(p.node.Err())
		case <-ctx.Done():
		}
	})
	if p.cfg.Tick > 0 {
		wg.Go(func() { p.tick(ctx) })
	}
	return &wg
}

func (p *part) tick(ctx context.Context) {
	t := time.NewTicker(p.cfg.Tick)
	defer t.Stop()
	at, seen, stats := time.Now(), p.seen.Load(), p.node.Stats()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		lastSeen, lastStats, took := seen, stats, seconds(at)
		at, seen, stats = time.Now(), p.seen.Load(), p.node.Stats()
		if seen > lastSeen { // else this is no time of training
			p.emit(Event{Tick: &Tick{Items: p.items(seen - lastSeen), Seconds: took, Stats: stats.Sub(lastStats)}})
		}
	}
}

// emit hands an event to Progress.
func (p *part) emit(e Event) {
	e.Run, e.Policy, e.Time, e.Seconds = p.run, p.spec.Policy, time.Now(), seconds(p.begin)
	p.record.note(&e, p.spec.Task, p.spec.Options.Epochs)
	if p.cfg.Progress == nil {
		return
	}
	p.emitting.Lock()
	defer p.emitting.Unlock()
	p.cfg.Progress(e)
}

// introduce exchanges what the nodes say of themselves.
func (p *part) introduce(ctx context.Context) error {
	workers := p.cfg.workers(p.spec)
	mine, err := json.Marshal(Peer{Host: hostname(), PID: os.Getpid(), Workers: workers})
	if err != nil {
		return err
	}
	all, err := p.env.Gather(ctx, "job nodes", mine)
	if err != nil {
		return err
	}
	unit, _ := p.task.Unit()
	start := Start{
		Self: p.session.Self(), Data: p.task.Summary(), Unit: unit,
		Fingerprint: p.task.Data(), Version: Version(), Warnings: slices.Concat(p.task.Warnings(), p.cfg.diskWarnings(p.spec, p.task), choiceWarnings(p.spec, p.task), p.lacking),
	}
	if start.Spec, err = p.spec.Encode(); err != nil {
		return err
	}
	for i, m := range p.session.Members() {
		peer, err := decodePeer(m, all[i])
		if err != nil {
			return err
		}
		start.Nodes = append(start.Nodes, peer)
		p.result.Workers += peer.Workers
	}
	p.emit(Event{Start: &start})
	return nil
}

// choiceWarnings warns if the run is to end, or its model is chosen, by what it is tested on.
func choiceWarnings(s *Spec, t task.Task) []string {
	if u, ok := t.(task.Unvalidated); !ok || !u.Unvalidated() {
		return nil
	}
	several := s.Options.EvalEvery > 0 && s.Options.EvalEvery < s.Options.Epochs
	what := ""
	switch {
	case s.Options.Patience > 0:
		what = "--patience"
	case several && s.Checkpoint != "" && choosesBest(t):
		what = "--eval-every, with checkpoints,"
	default:
		return nil
	}
	return []string{what + " chooses the model by the test data, as there are no data to validate on: the test figures are better than new data would show"}
}

// decodePeer reads what a member says of itself.
func decodePeer(m coord.Member, text []byte) (p Peer, err error) {
	if err = json.Unmarshal(text, &p); err == nil && p.Workers < 1 {
		err = fmt.Errorf("it has %d workers", p.Workers)
	}
	if err != nil {
		return p, fmt.Errorf("job: %v introduced itself badly: %w", m, err)
	}
	p.ID, p.Addr = m.ID, m.Addr
	return p, nil
}

// train trains, and evaluates the model before it where the spec says so.
func (p *part) train(ctx context.Context) (*train.Report, error) {
	p.result.Policy, p.result.Nodes = p.spec.Policy, len(p.session.Members())
	if p.spec.Untrained {
		ms, err := p.task.Test(ctx, &p.env, "untrained", true)
		if err != nil {
			return nil, fmt.Errorf("job: evaluating the untrained model: %w", err)
		}
		p.result.Untrained = Metrics(ms)
		p.emit(Event{Evaluation: &Evaluation{Metrics: SplitMetrics(ms)}})
	}
	var err error
	if p.mark, err = p.stats(ctx, "before"); err != nil {
		return nil, err
	}
	p.epochAt = time.Now()
	p.spare.begin()
	p.trained = examplesOf(p.env.Begin)
	if p.cfg.frozen {
		s := p.env.Begin
		p.result.Epochs, p.result.End = s.Epochs, train.AllEpochs
		return &train.Report{Epochs: s.Epochs, End: train.AllEpochs}, nil
	}
	rep, err := p.profiled(func() (*train.Report, error) { return p.task.Train(ctx, p.env, p.spec.Options, &p.seen) })
	if err == nil {
		err = p.profileErrors(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.result.Epochs, p.result.End, p.result.Reason = rep.Epochs, rep.End, p.session.StopReason()
	p.untrained(rep)
	return rep, nil
}

// untrained tells if there was nothing to train of a run that goes on from a checkpoint: its figures are those of the model there.
func (p *part) untrained(rep *train.Report) {
	b := p.env.Begin
	if b == nil || rep.Epochs > b.Epochs || rep.End == train.Stopped {
		return
	}
	why := fmt.Sprintf("--epochs asks for %d, so give a larger one to train more", p.spec.Options.Epochs)
	if rep.End == train.NoImprovement {
		why = fmt.Sprintf("its last %s did not improve, so give a larger --patience, or 0, to train more", plural.Of(p.spec.Options.Patience, "evaluation"))
	}
	p.emit(Event{Warning: fmt.Sprintf("nothing was left to train: %s has %s, and %s", p.spec.Resume, plural.Of(b.Epochs, "epoch"), why)})
}

// profiled takes a profile of training where the configuration asks for one.
func (p *part) profiled(train func() (*train.Report, error)) (rep *train.Report, err error) {
	if p.cfg.Profile != "" {
		var prof *profile
		if prof, err = startProfile(p.cfg.Profile, p.session.Self()); err != nil {
			return rep, err
		}
		defer func() { // an error costs the profile, not what was trained
			if perr := prof.stop(); perr != nil {
				p.result.ProfileError = perr.Error()
			}
		}()
	}
	return train()
}

// profileErrors tells the leader which nodes could not write their profiles. All nodes call it.
func (p *part) profileErrors(ctx context.Context) error {
	all, err := p.env.Gather(ctx, "job profile", []byte(p.result.ProfileError))
	if err == nil && p.cfg.leads {
		all = slices.DeleteFunc(all, func(text []byte) bool { return len(text) == 0 })
		p.result.ProfileError = string(bytes.Join(all, []byte("\n")))
	}
	return err
}

// progress turns the events of training into those of the run. All nodes come here at the
// same points, so they can put their stats together. An error ends the work.
func (p *part) progress(ctx context.Context, e train.Event) {
	var err error
	switch {
	case e.Loss != nil:
		err = p.epoch(ctx, e)
	case e.Evaluation != nil:
		p.evaluated(e.Epoch, e.Evaluation)
		p.spare.evaluated()
		// The cost of the evaluation is not training's.
		p.mark, err = p.stats(ctx, fmt.Sprintf("evaluation %d", e.Epoch))
		p.epochAt = time.Now()
	}
	if err != nil {
		p.cancel(err)
	}
}

// evaluated tells of an evaluation.
func (p *part) evaluated(epoch int, e *train.Evaluation) {
	j := SplitMetrics(e.Metrics)
	p.emitting.Lock()
	_, p.metrics = j.bySplit()
	p.emitting.Unlock()
	p.emit(Event{Evaluation: &Evaluation{Epoch: epoch, Metrics: j, Warnings: e.Warnings, LowerIsBetter: e.LowerIsBetter}})
}

func (p *part) epoch(ctx context.Context, e train.Event) error {
	took := seconds(p.epochAt)
	p.spare.trained(time.Since(p.epochAt))
	p.before = p.seen.Load()
	now, err := p.stats(ctx, fmt.Sprintf("epoch %d", e.Epoch))
	if err != nil {
		return err
	}
	did := now.Sub(p.mark)
	p.result.TrainSeconds += took
	p.result.add(did)
	p.mark, p.epochAt = now, time.Now()
	examples := e.Loss.Examples
	if b := p.env.Begin; b != nil { // what the run that this one goes on with had trained of the epoch
		at := b.Position.Of(e.Epoch)
		examples -= at.Examples
	}
	p.trained += examples
	p.emit(Event{Epoch: &Epoch{
		Epoch: e.Epoch, Of: p.spec.Options.Epochs, Loss: e.Loss.Mean(), Items: p.items(examples), Seconds: took, Stats: did,
	}})
	return nil
}

// failed tells that training ended by an error.
func (p *part) failed(err error) {
	under := (p.seen.Load() - p.before) * int64(p.result.Workers) / int64(len(p.env.Workers))
	p.emit(Event{Failed: &Failed{Error: err.Error(), Items: p.items(p.trained + under)}})
}

// examplesOf returns how many examples were trained in a state, nil for that before the first epoch.
func examplesOf(s *train.State) (n int64) {
	if s == nil {
		return 0
	}
	for _, l := range s.Losses {
		n += l.Examples
	}
	for _, e := range s.Position.Epochs {
		n += e.Examples
	}
	return n
}

func (p *part) items(examples int64) int64 {
	_, n := p.task.Unit()
	return examples / n
}

// stats returns the summed stats of all nodes.
func (p *part) stats(ctx context.Context, when string) (node.Stats, error) {
	mine, err := json.Marshal(p.node.Stats())
	if err != nil {
		return node.Stats{}, err
	}
	all, err := p.env.Gather(ctx, "job stats "+when, mine)
	if err != nil {
		return node.Stats{}, err
	}
	return sumOf(all)
}

// sumOf reads the stats of all nodes and adds them up.
func sumOf(all [][]byte) (sum node.Stats, err error) {
	for i, b := range all {
		var s node.Stats
		if err := json.Unmarshal(b, &s); err != nil {
			return sum, fmt.Errorf("job: the stats of node %d cannot be read: %w", i, err)
		}
		sum.Add(s)
	}
	return sum, nil
}

// finish evaluates the trained model and exports it, unless there is a checkpoint of a better one.
func (p *part) finish(ctx context.Context, rep *train.Report) error {
	p.collect()
	if err := p.findBest(ctx, rep); err != nil {
		return err
	}
	if p.best > 0 {
		p.result.sum(p.begin)
		return nil
	}
	if !p.cfg.untested {
		ms, err := p.task.Test(ctx, &p.env, "test", false)
		if err != nil {
			return fmt.Errorf("job: evaluating the model: %w", err)
		}
		p.result.Test = Metrics(ms)
	}
	if p.cfg.Export != "" {
		if err := p.export(ctx); err != nil {
			return err
		}
	}
	p.result.CheckpointError = p.lost()
	p.result.sum(p.begin)
	return nil
}

// lost says why nothing keeps the model at the end of a run that was to keep it in checkpoints; empty: something does. It is
// asked of the leader. An interrupted run keeps the former checkpoint.
func (p *part) lost() string {
	if v := p.cfg.saver; v != nil && v.failed != "" && p.cfg.Export == "" && !p.result.Interrupted() {
		return "nothing keeps the model at the end of the run: " + v.failed
	}
	return ""
}

// fork runs the workers of a task. A panic of one, such as by a defect of the task, ends the process: the other nodes are told of it first.
func (p *part) fork(n int, do func(i int)) {
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() { p.telling(func() { do(i) }) })
	}
	workers.Wait()
}

func (p *part) telling(do func()) {
	defer host.Panicking(func(err error) {
		self := p.session.Members()[p.session.Self()]
		p.session.Fail(&coord.MemberError{Member: self, Err: fmt.Errorf("%w: %w", godwit.ErrPeerLost, err)}) // the process is about to end
	})
	do()
}
