package job

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// findBest finds the checkpoint of the best evaluation, where the last model is not the best. All nodes
// find the same one.
func (p *part) findBest(ctx context.Context, rep *train.Report) error {
	if !choosesBest(p.task) {
		return nil
	}
	if p.spec.Checkpoint == "" || len(rep.Evaluated) == 0 || rep.Evaluated[rep.Best] == rep.Epochs {
		return nil
	}
	var mine []byte
	if v := p.cfg.saver; v != nil {
		n, err := p.wholeBest(ctx, p.patient(v.store), rep.Evaluated[rep.Best])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			p.emit(Event{Warning: fmt.Sprintf("the model is the last one, not the best: that of epoch %d cannot be taken from its checkpoint: %v", rep.Evaluated[rep.Best], err)})
		default:
			mine = fmt.Append(nil, n)
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

// choosesBest reports whether the best model of a task is taken in the end. Of those that count, the last one is the whole.
func choosesBest(t task.Task) bool {
	_, counts := t.(train.Continuer)
	return !counts
}

// wholeBest returns the number of the checkpoint of the best evaluation, behind an epoch. It reads all of it, as the last model, which is
// the only other one, is gone when it is taken.
func (p *part) wholeBest(ctx context.Context, store checkpoint.Store, epoch int) (number uint64, err error) {
	all, err := checkpoint.Manifests(ctx, store) // an error is of some, and all has the others
	for _, m := range all {
		if m.Epochs == epoch && m.Score != nil {
			number = m.Number
		}
	}
	switch {
	case number > 0:
	case err != nil:
		return 0, err
	default:
		return 0, fmt.Errorf("there is none at %s", store)
	}
	c, err := checkpoint.Open(ctx, store, number)
	if err != nil {
		return 0, err
	}
	if _, err := readRun(ctx, c); err != nil {
		return 0, err
	}
	_, err = c.Verify(ctx)
	return number, err
}

// takeBest evaluates and exports the model of the best checkpoint, at the leader.
func (p *part) takeBest(ctx context.Context) error {
	if p.cfg.saver == nil {
		return nil
	}
	place := numberedPlace(p.spec.Checkpoint, p.best)
	r, err := ExportCheckpoint(ctx, place, NodeConfig{Data: p.cfg.Data, Workers: p.cfg.Workers, Export: p.cfg.Export, storePatience: p.cfg.storePatience})
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
	s, err := resumed(ctx, place, cfg.patience())
	if err != nil {
		return nil, err
	}
	c, err := openPlace(ctx, s.Resume, cfg.patience())
	if err != nil {
		return nil, err
	}
	s.Nodes, s.Checkpoint = 1, ""
	s.Options, cfg.frozen = train.Options{Epochs: max(1, c.Manifest().Epochs)}, true
	return Local(ctx, c.Manifest().Run, s, cfg)
}
