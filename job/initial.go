package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// initial is the model that training begins with.
type initial struct {
	src  *Model
	rows []train.Rows // for each table of the task
}

// initial opens the model that training begins with; nil: none. It is done before
// anybody is waited for.
func (s *Spec) initial(ctx context.Context, t task.Task) (_ *initial, err error) {
	if s.InitFrom == "" {
		return nil, nil
	}
	src, err := OpenModel(ctx, s.InitFrom)
	if err != nil {
		return nil, fmt.Errorf("job: the model to begin with: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	if task := src.Describe().Task; task != s.Task.Name() {
		return nil, fmt.Errorf("job: the model to begin with, in %s, is of the task %s, not of %s", s.InitFrom, task, s.Task.Name())
	}
	i, ok := t.(train.Importer)
	if !ok {
		return nil, fmt.Errorf("job: the task %s cannot begin with a trained model", s.Task.Name())
	}
	rows, err := i.Import(src.Source)
	if err != nil {
		return nil, fmt.Errorf("job: the model to begin with, in %s: %w", s.InitFrom, err)
	}
	return &initial{src, rows}, nil
}

// close removes what was made to read the model. A nil initial has nothing.
func (i *initial) close() {
	if i != nil {
		_ = i.src.Close() // the system cleans its folder of temporary files
	}
}

// initialize sets what training begins with, at the node whose process has it, and
// makes it visible at all nodes.
func (p *part) initialize(ctx context.Context) error {
	if p.spec.InitFrom == "" && p.spec.Resume == "" {
		return nil
	}
	if p.spec.Resume != "" {
		if err := p.resume(ctx); err != nil {
			return err
		}
	}
	if p.cfg.initial != nil {
		if err := p.setInitial(ctx, p.cfg.initial); err != nil {
			return fmt.Errorf("job: the model to begin with: %w", err)
		}
	}
	err := p.env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error { return w.SyncAll(ctx) })
	p.relay.restored()
	return err
}

func (p *part) setInitial(ctx context.Context, in *initial) error {
	if c, ok := p.task.(train.Continuer); ok {
		if err := c.Continue(in.src.Source, p.env.Node); err != nil {
			return err
		}
	}
	w := p.env.Workers[0]
	lacking, err := train.SetRows(ctx, w, in.rows)
	for i, n := range lacking {
		if t := w.Model().Table(i); n > 0 {
			p.lacking = append(p.lacking, fmt.Sprintf("%d of %d rows of the table %q are not in %s: they begin untrained", n, t.Rows, t.Name, p.spec.InitFrom))
		}
	}
	return err
}
