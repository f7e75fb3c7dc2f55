package job

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
)

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
	s.Options, cfg.frozen = train.Options{Epochs: max(1, c.Manifest().Epochs)}, true
	return Local(ctx, c.Manifest().Run, s, cfg)
}
