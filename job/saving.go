package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// elsewhere reports whether the run writes its checkpoints to another place than that of the one that it goes on from. The
// first one there is written at once.
func (s *Spec) elsewhere() bool {
	from, _, err := checkpoint.SplitPlace(s.Resume)
	return s.Resume != "" && err == nil && from != s.Checkpoint
}

// cut begins the owner of this node's cuts, of which checkpoints are written, and evaluations take place beside training. All nodes
// have one, or none.
func (p *part) cut(ctx context.Context) error {
	saves, holds := p.spec.Checkpoint != "", p.mayHold()
	if !saves && !holds {
		return nil
	}
	if err := p.openRelay(ctx, holds); err != nil {
		return err
	}
	p.cuts = cuts.New(cuts.Config{
		Leader: p.leads(), Taker: saving{p}, Rows: p.node.Cut, Exchange: p.session.Exchange, Due: p.due,
		Warn: p.waiting,
	})
	p.env.OnCut, p.env.Started = p.cuts.OnCut, p.started
	if saves {
		p.env.EpochEnd = p.epochEnd
	}
	if holds {
		p.env.Beside = p.beside
	}
	if p.cfg.cuts != nil {
		p.cfg.cuts(p.cuts)
	}
	return nil
}

// started says that all nodes have begun to train.
func (p *part) started() {
	p.relay.begin()
	p.cuts.Start()
}

// due is when the leader makes the next checkpoint while training goes on; the zero time: never.
func (p *part) due() time.Time {
	if p.cfg.saver == nil {
		return time.Time{}
	}
	return p.cfg.saver.due()
}

// epochEnd has a checkpoint written of the end of an epoch if there must be one of this very moment. All nodes call it.
func (p *part) epochEnd(ctx context.Context, s *train.State) error {
	p.rest()
	if !p.wanted(s) {
		return nil
	}
	return p.cuts.Boundary(ctx, s, saving{p})
}

// rest has cuts not wait for the workers of this node.
func (p *part) rest() {
	for _, w := range p.env.Workers {
		if c, ok := w.(godwit.Cutter); ok {
			c.Rest()
		}
	}
}

// wanted reports whether the end of an epoch is one of which there must be a checkpoint: the model is the best so far, or the
// last. All nodes get the same answer.
func (p *part) wanted(s *train.State) bool {
	_, best := s.Last()
	switch b := p.env.Begin; {
	case b != nil && b.Epochs == s.Epochs && s.End == train.AllEpochs:
		return p.spec.elsewhere() // nothing was trained
	case p.spec.Temporary && s.End != "" && s.End != train.Stopped:
		return false // the live model is there
	}
	return best || s.End != ""
}

// A saving writes the rows of cuts as checkpoints.
type saving struct{ *part }

// Begin implements [cuts.Taker].
func (p saving) Begin() (plan cuts.Plan, err error) {
	v := p.cfg.saver
	id := checkpoint.NewID(v.next)
	v.next++
	plan.Number, plan.Which = id.Number, node.WholeCut
	if checkpoint.Incremental(v.manifest) {
		plan.Which = node.ChangedCut
	}
	plan.Detail, err = json.Marshal(id)
	return plan, err
}

// Take writes the rows of this node, and at the leader's what else a run needs.
func (p saving) Take(ctx context.Context, c *cuts.Cut) (json.RawMessage, error) {
	var id checkpoint.ID
	if err := json.Unmarshal(c.Detail, &id); err != nil {
		return nil, fmt.Errorf("job: what the leader says of a checkpoint cannot be read: %w", err)
	}
	var others *relaying // nil: all nodes write
	if p.relays() {
		others = p.relay
	}
	if others != nil && !p.leads() {
		return nil, others.send(ctx, c)
	}
	defer others.end(c.Number)
	return p.write(ctx, id, func(w *checkpoint.Writer) (*train.State, error) {
		if err := others.rows(ctx, c, w.Write); err != nil || p.cfg.saver == nil {
			return nil, err
		}
		return c.State(ctx)
	})
}

// write writes what this node has of a checkpoint, by a function that writes its rows and returns, at the leader, the state of the run.
func (p saving) write(ctx context.Context, id checkpoint.ID, fill func(*checkpoint.Writer) (*train.State, error)) (json.RawMessage, error) {
	store, err := checkpoint.OpenStore(ctx, p.spec.Checkpoint)
	if err != nil {
		return nil, err
	}
	tables := checkpoint.Tables(p.env.Workers[0].Model())
	piece, err := checkpoint.Write(ctx, p.patient(store), id, int(p.session.Self()), tables, func(w *checkpoint.Writer) error {
		s, err := fill(w)
		if err != nil || s == nil {
			return err
		}
		b, err := p.describeRun(s)
		if err != nil {
			return err
		}
		return w.Section(runSection, b)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(piece)
}

func (p *part) describeRun(s *train.State) ([]byte, error) {
	spec := *p.spec
	spec.Resume = ""
	b, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(savedRun{savedVersion, b, p.task.Data(), s})
}

// Taken writes the manifest, removes old checkpoints, and tells of it. It fails only if another run has
// taken the place over: what cannot be written leaves the former checkpoint, and the run goes on.
func (p saving) Taken(ctx context.Context, c *cuts.Cut, reports []cuts.Report) error {
	s, err := c.State(ctx)
	if err == nil {
		err = train.CheckState(p.task, s)
	}
	return p.conclude(ctx, c, s, err, reports, c.Began)
}

// conclude is Taken of a cut with a state, or an error in its place, whose writing began at a time.
func (p saving) conclude(ctx context.Context, c *cuts.Cut, s *train.State, err error, reports []cuts.Report, began time.Time) error {
	v := p.cfg.saver
	var m *checkpoint.Manifest
	if err == nil {
		m, err = p.commit(ctx, c, s, reports)
	}
	if errors.Is(err, checkpoint.ErrLocked) || ctx.Err() != nil {
		return err
	}
	v.manifest = m // nil after an error: the next one has all rows then
	v.last = time.Now()
	v.cost = max(v.last.Sub(began), 1)
	e := &Checkpoint{Place: numberedPlace(p.spec.Checkpoint, c.Number), Number: c.Number, Seconds: v.cost.Seconds()}
	if s != nil {
		e.Epoch, e.Within, e.Items = s.Epochs, s.Within(), p.items(examplesOf(s))
	}
	if err != nil {
		e.Error, e.GivenUp = err.Error(), c.Outranked || errors.Is(err, train.ErrUneven)
	}
	if v.failed = ""; err != nil && !e.GivenUp {
		v.failed = fmt.Sprintf("checkpoint %d could not be written: %v", c.Number, err)
		if !errors.As(err, new(manifestError)) {
			v.tidy(ctx)
		}
	}
	if err == nil {
		e.Rows, e.Bytes = m.Rows, m.Bytes()
	}
	p.emit(Event{Checkpoint: e})
	return nil
}

// commit writes the manifest of a checkpoint, and removes old ones.
func (p saving) commit(ctx context.Context, c *cuts.Cut, s *train.State, reports []cuts.Report) (*checkpoint.Manifest, error) {
	v, store := p.cfg.saver, p.patient(p.cfg.saver.store)
	var id checkpoint.ID
	if err := json.Unmarshal(c.Detail, &id); err != nil {
		return nil, err
	}
	pieces, err := piecesOf(reports)
	if err != nil {
		return nil, err
	}
	if err := v.lock.Check(); err != nil {
		return nil, err
	}
	var layers []checkpoint.Layer
	if c.Which == node.ChangedCut {
		layers = v.manifest.Layers()
	}
	m, err := checkpoint.Commit(ctx, store, checkpoint.Manifest{
		ID: id, BuildsOn: layers, Run: p.run, Task: p.spec.Task.Name(), Program: Version(), Written: time.Now().Round(time.Second),
		Epochs: s.Epochs, Seed: p.spec.Seed, Tables: checkpoint.Tables(p.env.Workers[0].Model()), Score: score(s), Resumed: v.resumed,
	}, pieces)
	if err != nil {
		return nil, manifestError{err}
	}
	v.kept = true
	p.prune(ctx, store)
	return m, nil
}

// A manifestError is of a manifest that could not be written, as far as is known. A place that was slow may have it all the same, and what it names.
type manifestError struct{ error }

func (e manifestError) Unwrap() error { return e.error }

// prune removes old checkpoints. If it cannot, that costs their space only, and is told once.
func (p saving) prune(ctx context.Context, store checkpoint.Store) {
	keep := p.spec.Keep
	if keep == 0 {
		keep = keepCheckpoints
	}
	v := p.cfg.saver
	pruned, err := v.lock.Prune(ctx, store, keep)
	if err == nil && len(pruned.Unreadable) > 0 {
		err = fmt.Errorf("nobody knows what these have, as their manifests cannot be read: %v", pruned.Unreadable)
	}
	if err != nil && ctx.Err() == nil && err.Error() != v.left {
		v.left = err.Error()
		p.emit(Event{Warning: fmt.Sprintf("old checkpoints could not be removed, and take their space: %v", err)})
	}
}

// tidyWithin is how long a place may take to remove what is left of a checkpoint.
const tidyWithin = 5 * time.Second

// tidy removes what is left of a checkpoint that could not be written, which takes the space that the next one needs where the place is full. All
// checkpoints stay. If it cannot, the next one that is written does so.
func (v *saver) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tidyWithin)
	defer cancel()
	_, _ = v.lock.Prune(ctx, checkpoint.Patient(v.store, tidyWithin), math.MaxInt)
}

// failureOf returns why nodes could not take a cut, that of the first one where something failed; nil if all could.
func failureOf(reports []cuts.Report) (err error) {
	for i, r := range reports {
		switch {
		case r.Err == "":
		case !r.Follows:
			return fmt.Errorf("node %d: %s", i, r.Err)
		case err == nil:
			err = fmt.Errorf("node %d: %s", i, r.Err)
		}
	}
	return err
}

// piecesOf returns what all nodes wrote. Nodes that sent their rows to the leader report nothing.
func piecesOf(reports []cuts.Report) (pieces []*checkpoint.Piece, err error) {
	if err := failureOf(reports); err != nil {
		return nil, err
	}
	for i, r := range reports {
		if len(r.Report) == 0 {
			continue
		}
		var p *checkpoint.Piece
		if err := json.Unmarshal(r.Report, &p); err != nil {
			return nil, fmt.Errorf("job: what node %d says of its part of a checkpoint cannot be read: %w", i, err)
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// score is the first figure of the last epoch's evaluation, nil if it has none or something was trained since.
func score(s *train.State) *checkpoint.Score {
	e, _ := s.Last()
	if e == nil || math.IsNaN(e.Metrics[0].Value) || math.IsInf(e.Metrics[0].Value, 0) {
		return nil
	}
	return &checkpoint.Score{Name: e.Metrics[0].Label(), Value: e.Metrics[0].Value, LowerIsBetter: e.LowerIsBetter}
}
