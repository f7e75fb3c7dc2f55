package job

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/job/internal/held"
	"github.com/godwit-ps/godwit/job/internal/relay"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// mayHold reports whether evaluations of the run can take place beside training: those of a task whose models can be read without training,
// by rows that nodes can send to the leader. All nodes get the same answer.
func (p *part) mayHold() bool {
	if _, reads := p.task.(train.Importer); !reads || train.InLockstep(p.task) || p.cfg.frozen || p.spec.Options.EvalEvery == 0 {
		return false
	}
	if len(p.session.Members()) == 1 {
		return true
	}
	if _, counts := p.task.(train.Continuer); counts && p.spec.InitFrom != "" {
		return false // how much was counted before is known to one node, as one of several
	}
	m := p.env.Workers[0].Model()
	for i := range m.Tables() {
		if !relay.Carries(m.TableRowLen(i)) {
			return false
		}
	}
	return true
}

// beside has an evaluation take place beside training ([train.Env].Beside), if processors have the time and there is the memory.
func (p *part) beside(ctx context.Context, s *train.State, evaluate train.Evaluator) (func(context.Context) (*train.State, error), error) {
	loads, err := p.loads(ctx, s.Epochs)
	if err != nil {
		return nil, err
	}
	leader := loads[p.leader]
	cost, wanted := leader.suffices(loads)
	if p.cfg.beside != nil {
		wanted = p.cfg.beside(s.Epochs)
	}
	if !wanted || !p.fits(leader.Available) {
		return nil, nil
	}
	if loads[p.session.Self()].sameProcess(leader) {
		p.spare.beside = cost
	}
	p.rest()
	e := &evaluating{saving: saving{p}, evaluate: evaluate, epoch: s.Epochs, state: s, done: make(chan struct{})}
	if err := p.cuts.Boundary(ctx, s, e); err != nil {
		return nil, err
	}
	return e.wait, nil
}

// loads returns what each node says of its processors behind an epoch.
func (p *part) loads(ctx context.Context, epoch int) ([]load, error) {
	b, err := json.Marshal(p.spare.load())
	if err != nil {
		return nil, err
	}
	texts, err := p.env.Gather(ctx, fmt.Sprintf("job processors after epoch %d", epoch), b)
	if err != nil {
		return nil, err
	}
	all := make([]load, len(texts))
	for i, b := range texts {
		if err := json.Unmarshal(b, &all[i]); err != nil {
			return nil, fmt.Errorf("job: what node %d says of its processors cannot be read: %w", i, err)
		}
	}
	return all, nil
}

// fits reports whether the leader's memory is there that the rows of a cut take. The first time that it is not is told.
func (p *part) fits(have uint64) bool {
	need := min(uint64(p.mark.Bytes), modelBytes(p.env.Workers[0].Model()))
	if need <= have/heldShare {
		return true
	}
	if !p.tight && p.leads() {
		p.tight = true
		p.emit(Event{Warning: fmt.Sprintf("evaluations hold up training: to take place beside it they would keep a copy of the model, %.1f MB, of %.1f MB of memory that are available",
			float64(need)/1e6, float64(have)/1e6)})
	}
	return false
}

// modelBytes are those of all rows of a model, with their states and numbers.
func modelBytes(m *godwit.Model) (sum uint64) {
	for i := range m.Tables() {
		width := uint64(8 + 4*m.TableRowLen(i))
		over, n := bits.Mul64(m.Table(i).Rows, width)
		if over > 0 || sum+n < sum {
			return math.MaxUint64
		}
		sum += n
	}
	return sum
}

// heldShare of the memory that is available is what a held cut may take: one part of so many.
const heldShare = 2

// An evaluating keeps the rows of a cut in memory, at the leader, evaluates the model that they are, and writes a checkpoint of it if it is the
// best so far. It is the [cuts.Taker] of one cut.
type evaluating struct {
	saving
	evaluate train.Evaluator
	epoch    int          // that it is of
	state    *train.State // behind the epoch; at the leader from done on with the evaluation
	fails    error        // the evaluation's
	began    time.Time    // the writing
	done     chan struct{}
}

// wait waits for the evaluation. All nodes call it, and return the leader's state.
func (e *evaluating) wait(ctx context.Context) (*train.State, error) {
	what := fmt.Sprintf("job evaluation after epoch %d", e.epoch)
	if !e.leads() {
		return e.hear(ctx, what)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.fails != nil {
		return nil, e.fails
	}
	b, err := json.Marshal(e.state)
	if err != nil {
		return nil, err
	}
	_, err = e.fromLeader(ctx, what, b)
	return e.state, err
}

// hear gets the state with the evaluation from the leader, and tells of it.
func (e *evaluating) hear(ctx context.Context, what string) (*train.State, error) {
	b, err := e.fromLeader(ctx, what, nil)
	if err != nil {
		return nil, err
	}
	s := new(train.State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("job: what node %d says of an evaluation cannot be read: %w", e.leader, err)
	}
	if n := len(s.Results); n > len(e.state.Results) {
		e.evaluated(s.Epochs, &s.Results[n-1])
	}
	return s, nil
}

// Begin implements [cuts.Taker].
func (e *evaluating) Begin() (cuts.Plan, error) {
	if e.cfg.saver == nil {
		e.lastCut++
		return cuts.Plan{Number: e.lastCut}, nil
	}
	e.cfg.saver.manifest = nil // so all rows are handed over, and the next checkpoint builds on this one or on none
	return e.saving.Begin()
}

// Take implements [cuts.Taker].
func (e *evaluating) Take(ctx context.Context, c *cuts.Cut) (json.RawMessage, error) {
	if !e.leads() {
		return nil, e.relay.send(ctx, c)
	}
	began := time.Now()
	rows := held.New(e.env.Workers[0].Model())
	defer e.relay.end(c.Number)
	if err := e.relay.rows(ctx, c, rows.Write); err != nil {
		return nil, err
	}
	e.spare.relaying = time.Since(began)
	ws, err := task.Readers(e.result.Workers, e.task.Tables(), rows.Values(), e.spec.Seed)
	if err != nil {
		return nil, err
	}
	s, err := e.evaluate(ctx, ws)
	if err != nil {
		e.fails = err
		return nil, err
	}
	e.state = s
	last := len(s.Results) - 1
	e.evaluated(s.Epochs, &s.Results[last])
	if e.cfg.saver == nil || s.Best != last {
		return nil, nil
	}
	return e.save(ctx, c, rows)
}

// save writes the rows as a checkpoint.
func (e *evaluating) save(ctx context.Context, c *cuts.Cut, rows *held.Rows) (json.RawMessage, error) {
	var id checkpoint.ID
	if err := json.Unmarshal(c.Detail, &id); err != nil {
		return nil, err
	}
	e.began = time.Now()
	return e.write(ctx, id, func(w *checkpoint.Writer) (*train.State, error) { return e.state, rows.Each(w.Write) })
}

// Taken implements [cuts.Taker].
func (e *evaluating) Taken(ctx context.Context, c *cuts.Cut, reports []cuts.Report) error {
	defer close(e.done)
	switch {
	case e.fails != nil || ctx.Err() != nil:
		return nil // who waits hears of it
	case !e.began.IsZero():
		return e.conclude(ctx, c, e.state, nil, reports, e.began)
	case reports[e.leader].Err != "":
		e.emit(Event{Warning: fmt.Sprintf("the model was not evaluated after epoch %d: %s", e.state.Epochs, reports[e.leader].Err)})
	}
	return nil
}
