package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// Checkpoints take at most a hundredth of the time, if they need not be further apart for it than mostApart and what
// is left of an epoch. keepCheckpoints are kept unless the spec says another number.
const (
	costShare       = 100
	keepCheckpoints = 3
)

var mostApart = 10 * time.Minute // tests change it

// runSection is the section of a checkpoint with what a run needs beside its rows.
const runSection = "run"

// A savedRun is what a checkpoint says of the run that wrote it. Fields that are added later must
// be ones that earlier programs can ignore; else the version grows.
type savedRun struct {
	Version int             `json:"version"`
	Spec    json.RawMessage `json:"spec"`
	Data    string          `json:"data"` // its fingerprint
	State   *train.State    `json:"state"`
}

const savedVersion = 1

// readRun reads what a checkpoint says of its run.
func readRun(ctx context.Context, c *checkpoint.Checkpoint) (*savedRun, error) {
	b, err := c.Section(ctx, runSection)
	if err != nil {
		return nil, err
	}
	var r savedRun
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("job: checkpoint %d: the section %q cannot be read: %w", c.Manifest().Number, runSection, err)
	}
	if r.Version != savedVersion || r.State == nil {
		return nil, fmt.Errorf("job: checkpoint %d: the section %q has version %d, and this program reads %d", c.Manifest().Number, runSection, r.Version, savedVersion)
	}
	return &r, nil
}

// Resumed returns the specification of the run that wrote the checkpoint at a place, to go on from there: with
// its Resume, and a Checkpoint at the same place. These fields may be changed then: Nodes, Workers, Policy, Filters, Staleness,
// Options, Data (the same data elsewhere), Untrained, Checkpoint, Keep, TTL, Join. The task's settings and the seed may not.
func Resumed(ctx context.Context, place string) (Spec, error) {
	c, err := checkpoint.OpenPlace(ctx, place)
	if err != nil {
		return Spec{}, fmt.Errorf("job: the checkpoint to go on from: %w", err)
	}
	r, err := readRun(ctx, c)
	if err != nil {
		return Spec{}, err
	}
	s, err := Decode(r.Spec)
	if err != nil {
		return Spec{}, err
	}
	store, _, err := checkpoint.SplitPlace(place)
	if err != nil {
		return Spec{}, err
	}
	s.Resume, s.Checkpoint, s.InitFrom, s.Untrained = numberedPlace(store, c.Manifest().Number), store, "", false
	return s, nil
}

func numberedPlace(store string, number uint64) string { return fmt.Sprintf("%s#%d", store, number) }

// A saver decides when checkpoints are written, and writes their manifests. It belongs to the node of the process that
// leads, after that process made it.
type saver struct {
	store checkpoint.Store
	lock  *checkpoint.Lock
	next  uint64        // the number of the next checkpoint
	last  time.Time     // when the last one was complete, or the run began
	cost  time.Duration // of the last one; 0: there was none
	apart time.Duration // how far apart they are at most
}

// prepareSaver checks what the spec says of checkpoints, and takes the lock of their place; nil if there are to be
// none. It is done before anybody is waited for.
func (s *Spec) prepareSaver(ctx context.Context, run string, t task.Task) (*saver, error) {
	if s.Resume != "" {
		if err := s.checkResume(ctx, t); err != nil {
			return nil, err
		}
	}
	if s.Checkpoint == "" {
		return nil, nil
	}
	store, err := checkpoint.OpenStore(ctx, s.Checkpoint)
	if err != nil {
		return nil, err
	}
	lock, err := checkpoint.Acquire(ctx, store, checkpoint.Holder{Run: run, Host: hostname(), PID: os.Getpid(), Since: time.Now()})
	if err != nil {
		return nil, err
	}
	v := &saver{store: store, lock: lock, last: time.Now(), apart: mostApart}
	if v.next, err = checkpoint.Next(ctx, store); err == nil && v.next > 1 && s.Resume == "" {
		err = fmt.Errorf("job: at %s are checkpoints of an earlier run: go on with it (--resume), or choose another place for those of this run", store)
	}
	if err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// close gives the lock back. A nil saver has none.
func (v *saver) close() {
	if v != nil {
		_ = v.lock.Release() // if that fails, it is a lease that ends
	}
}

// due reports whether a checkpoint is to be written at the end of an epoch.
func (v *saver) due(s *train.State, now time.Time) bool {
	_, best := s.Last()
	return best || s.End != "" || v.cost == 0 || now.Sub(v.last) >= min(v.apart, (costShare-1)*v.cost)
}

// checkResume fixes which checkpoint the run goes on from, and checks that it can.
func (s *Spec) checkResume(ctx context.Context, t task.Task) error {
	store, _, err := checkpoint.SplitPlace(s.Resume)
	if err != nil {
		return err
	}
	c, err := checkpoint.OpenPlace(ctx, s.Resume)
	if err != nil {
		return fmt.Errorf("job: the checkpoint to go on from: %w", err)
	}
	r, err := readRun(ctx, c)
	if err != nil {
		return err
	}
	old, err := Decode(r.Spec)
	if err != nil {
		return err
	}
	if err := s.sameModel(&old); err != nil {
		return fmt.Errorf("job: the run cannot go on from %s: %w", s.Resume, err)
	}
	if t.Data() != r.Data {
		return fmt.Errorf("job: the run cannot go on from %s: its data were others: %s, and these are %s (%s)", s.Resume, r.Data, t.Data(), t.Summary())
	}
	s.Resume = numberedPlace(store, c.Manifest().Number)
	return nil
}

// sameModel returns an error if a run with the spec trains something else than one with another spec.
func (s *Spec) sameModel(old *Spec) error {
	if s.Task.Name() != old.Task.Name() {
		return fmt.Errorf("it was of the task %s, not of %s", old.Task.Name(), s.Task.Name())
	}
	if s.Seed != old.Seed {
		return fmt.Errorf("its seed was %d, and is %d now", old.Seed, s.Seed)
	}
	mine, err := json.Marshal(s.Task)
	if err != nil {
		return err
	}
	theirs, err := json.Marshal(old.Task)
	if err != nil {
		return err
	}
	if string(mine) != string(theirs) {
		return fmt.Errorf("its settings of the task were %s, and are %s now", theirs, mine)
	}
	return nil
}

// resume restores the rows that have their home at this node, and notes what was done.
func (p *part) resume(ctx context.Context) error {
	c, err := checkpoint.OpenPlace(ctx, p.spec.Resume)
	if err != nil {
		return fmt.Errorf("job: the checkpoint to go on from: %w", err)
	}
	m := p.env.Workers[0].Model()
	if old, now := c.Manifest().Tables, checkpoint.Tables(m); !slices.Equal(old, now) {
		return fmt.Errorf("job: the run cannot go on from %s: its tables were %v, and are %v now", p.spec.Resume, old, now)
	}
	r, err := readRun(ctx, c)
	if err != nil {
		return err
	}
	err = c.Rows(ctx, p.mayBeHome, func(table int, rows []uint64, vals []float32) error {
		_, err := p.node.Restore(table, rows, vals, false)
		return err
	})
	if err != nil {
		return fmt.Errorf("job: restoring %s: %w", p.spec.Resume, err)
	}
	p.env.Begin = r.State
	if e, _ := r.State.Last(); e != nil {
		_, p.metrics = SplitMetrics(e.Metrics).bySplit()
	}
	return nil
}

// mostAsked is of how many rows it is found out whether one has its home here: more are read in any case.
const mostAsked = 1 << 16

// mayBeHome reports whether a row of those between two rows of a table may have its home at this node.
func (p *part) mayBeHome(table int, first, last uint64) bool {
	if len(p.session.Members()) == 1 || last-first >= mostAsked {
		return true
	}
	m := p.env.Workers[0].Model()
	for row := first; row <= last; row++ {
		if p.node.Home(m.Key(table, row)) == p.session.Self() {
			return true
		}
	}
	return false
}

// elsewhere reports whether the run writes its checkpoints to another place than that of the one that it goes on from. The
// first one there is written at once.
func (p *part) elsewhere() bool {
	from, _, err := checkpoint.SplitPlace(p.spec.Resume)
	return err == nil && from != p.spec.Checkpoint
}

// epochEnd writes a checkpoint if one is due. All nodes call it, with equal states.
func (p *part) epochEnd(ctx context.Context, s *train.State) error {
	began := time.Now()
	id, err := p.agree(ctx, s)
	if err != nil || id.Number == 0 {
		return err
	}
	if err := p.env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error {
		err := train.SyncAll(ctx, w)
		if c, ok := w.(godwit.Cutter); ok {
			c.Rest() // the cut waits for it otherwise
		}
		return err
	}); err != nil {
		return err
	}
	piece, werr := p.write(ctx, id, s)
	pieces, err := p.gatherPieces(ctx, id, piece, werr)
	if err != nil {
		return err
	}
	if v := p.cfg.saver; v != nil {
		if err := p.commit(ctx, id, s, pieces, began); err != nil {
			return err
		}
	}
	// What this took is not training's.
	p.mark, err = p.stats(ctx, fmt.Sprintf("checkpoint %d", id.Number))
	p.epochAt = time.Now()
	return err
}

// agree returns which checkpoint all nodes write now, as the leader says; number 0: none.
func (p *part) agree(ctx context.Context, s *train.State) (id checkpoint.ID, err error) {
	var mine []byte
	if v := p.cfg.saver; v != nil {
		if v.due(s, time.Now()) {
			id = checkpoint.NewID(v.next)
		}
		if mine, err = json.Marshal(id); err != nil {
			return id, err
		}
	}
	all, err := p.env.Gather(ctx, fmt.Sprintf("job checkpoint after epoch %d", s.Epochs), mine)
	if err != nil {
		return id, err
	}
	for i, b := range all {
		if len(b) == 0 {
			continue
		}
		if err := json.Unmarshal(b, &id); err != nil {
			return id, fmt.Errorf("job: what node %d says of checkpoints cannot be read: %w", i, err)
		}
	}
	return id, nil
}

// write writes the rows of this node, and at the leader's what else a run needs.
func (p *part) write(ctx context.Context, id checkpoint.ID, s *train.State) (*checkpoint.Piece, error) {
	store, err := checkpoint.OpenStore(ctx, p.spec.Checkpoint)
	if err != nil {
		return nil, err
	}
	tables := checkpoint.Tables(p.env.Workers[0].Model())
	return checkpoint.Write(ctx, store, id, int(p.session.Self()), tables, func(w *checkpoint.Writer) error {
		if p.cfg.saver != nil {
			b, err := p.describeRun(s)
			if err == nil {
				err = w.Section(runSection, b)
			}
			if err != nil {
				return err
			}
		}
		_, err := p.node.Cut(ctx, id.Number, node.WholeCut, w.Write)
		return err
	})
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

// A written is what a node tells the others of its piece of a checkpoint.
type written struct {
	Piece *checkpoint.Piece `json:"piece,omitempty"`
	Err   string            `json:"err,omitempty"`
}

// gatherPieces returns what all nodes wrote.
func (p *part) gatherPieces(ctx context.Context, id checkpoint.ID, piece *checkpoint.Piece, werr error) ([]written, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	mine := written{Piece: piece}
	if werr != nil {
		mine.Err = werr.Error()
	}
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := p.env.Gather(ctx, fmt.Sprintf("job pieces of checkpoint %d", id.Number), b)
	if err != nil {
		return nil, err
	}
	pieces := make([]written, len(all))
	for i, b := range all {
		if err := json.Unmarshal(b, &pieces[i]); err != nil {
			return nil, fmt.Errorf("job: what node %d says of its part of checkpoint %d cannot be read: %w", i, id.Number, err)
		}
	}
	return pieces, nil
}

// commit writes the manifest, removes old checkpoints, and tells of it. It fails only if another run has
// taken the place over: what cannot be written leaves the former checkpoint, and the run goes on.
func (p *part) commit(ctx context.Context, id checkpoint.ID, s *train.State, pieces []written, began time.Time) error {
	v := p.cfg.saver
	m, err := p.manifest(ctx, id, s, pieces)
	if errors.Is(err, checkpoint.ErrLocked) || ctx.Err() != nil {
		return err
	}
	v.last = time.Now()
	v.cost = max(v.last.Sub(began), 1)
	e := &Checkpoint{Place: numberedPlace(p.spec.Checkpoint, id.Number), Number: id.Number, Epoch: s.Epochs, Seconds: v.cost.Seconds()}
	if err != nil {
		e.Error = err.Error()
	} else {
		e.Rows, e.Bytes = m.Rows, m.Bytes()
	}
	p.emit(Event{Checkpoint: e})
	return nil
}

// manifest writes the manifest of a checkpoint, and removes old ones.
func (p *part) manifest(ctx context.Context, id checkpoint.ID, s *train.State, pieces []written) (*checkpoint.Manifest, error) {
	v := p.cfg.saver
	var whole []*checkpoint.Piece
	for i, w := range pieces {
		if w.Piece == nil {
			return nil, fmt.Errorf("node %d: %s", i, w.Err)
		}
		whole = append(whole, w.Piece)
	}
	if err := v.lock.Check(); err != nil {
		return nil, err
	}
	m, err := checkpoint.Commit(ctx, v.store, checkpoint.Manifest{
		ID: id, Run: p.run, Task: p.spec.Task.Name(), Program: Version(), Written: time.Now().Round(time.Second),
		Epochs: s.Epochs, Seed: p.spec.Seed, Tables: checkpoint.Tables(p.env.Workers[0].Model()), Score: score(s),
	}, whole)
	if err != nil {
		return nil, err
	}
	v.next++
	keep := p.spec.Keep
	if keep == 0 {
		keep = keepCheckpoints
	}
	_, err = checkpoint.Prune(ctx, v.store, keep)
	return m, err
}

// score is the first figure of the last epoch's evaluation, nil if it has none.
func score(s *train.State) *checkpoint.Score {
	e, _ := s.Last()
	if e == nil || math.IsNaN(e.Metrics[0].Value) || math.IsInf(e.Metrics[0].Value, 0) {
		return nil
	}
	return &checkpoint.Score{Name: e.Metrics[0].Label(), Value: e.Metrics[0].Value, LowerIsBetter: e.LowerIsBetter}
}

// findBest finds the checkpoint of the best evaluation, where the last model is not the best. All nodes
// find the same one.
func (p *part) findBest(ctx context.Context, rep *train.Report) error {
	if _, counts := p.task.(train.Continuer); counts {
		return nil // what was counted last is the whole
	}
	if p.spec.Checkpoint == "" || len(rep.Evaluated) == 0 || rep.Evaluated[rep.Best] == rep.Epochs {
		return nil
	}
	var mine []byte
	if v := p.cfg.saver; v != nil {
		all, err := checkpoint.Manifests(ctx, v.store)
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.Epochs == rep.Evaluated[rep.Best] && m.Score != nil {
				mine = fmt.Append(nil, m.Number)
			}
		}
	}
	all, err := p.env.Gather(ctx, "job best checkpoint", mine)
	if err != nil {
		return err
	}
	for _, b := range all {
		if len(b) > 0 {
			if _, err := fmt.Sscan(string(b), &p.best); err != nil {
				return fmt.Errorf("job: the number of the best checkpoint cannot be read: %w", err)
			}
		}
	}
	return nil
}

// takeBest evaluates and exports the model of the best checkpoint, at the leader.
func (p *part) takeBest(ctx context.Context) error {
	if p.cfg.saver == nil {
		return nil
	}
	place := numberedPlace(p.spec.Checkpoint, p.best)
	r, err := ExportCheckpoint(ctx, place, NodeConfig{Data: p.cfg.Data, Workers: p.cfg.Workers, Export: p.cfg.Export})
	if err != nil {
		return fmt.Errorf("job: the model of the best checkpoint, %s: %w", place, err)
	}
	p.result.Test, p.result.Exported, p.result.ExportError, p.result.Best = r.Test, r.Exported, r.ExportError, r.Epochs
	p.result.Seconds = seconds(p.begin)
	return nil
}

// ExportCheckpoint evaluates the model of the checkpoint at a place and writes it to the folder cfg.Export, as
// training does at its end. The data are read again where the run read them, or at cfg.Data.
func ExportCheckpoint(ctx context.Context, place string, cfg NodeConfig) (*Result, error) {
	s, err := Resumed(ctx, place)
	if err != nil {
		return nil, err
	}
	c, err := checkpoint.OpenPlace(ctx, s.Resume)
	if err != nil {
		return nil, err
	}
	s.Nodes, s.Checkpoint = 1, ""
	s.Options = train.Options{Epochs: c.Manifest().Epochs} // no more
	return Local(ctx, c.Manifest().Run, s, cfg)
}
