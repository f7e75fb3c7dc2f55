package train

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// An Evaluator evaluates a model as it was when an epoch had ended, by workers that read it and change nothing, and returns the state
// of the run with that evaluation. It is called once.
type Evaluator func(ctx context.Context, ws []godwit.Worker) (*State, error)

// evaluateBeside has Env evaluate the model while training goes on, and reports whether it does. An evaluation that can be the last one, by
// which the run ends, is none of those: so a run ends as it does without.
func (r *run[D]) evaluateBeside(ctx context.Context) (bool, error) {
	p := r.opts.Patience
	if r.env.Beside == nil || r.rep.End != "" || p > 0 && len(r.rep.Results)-r.rep.Best >= p {
		return false, nil
	}
	s := r.state()
	r.past.add(s)
	var err error
	r.beside, err = r.env.Beside(ctx, s, func(ctx context.Context, ws []godwit.Worker) (*State, error) {
		judged := *s
		if err := r.judge(ctx, &Env{Workers: ws}, &judged); err != nil {
			return nil, err
		}
		r.past.replace(&judged)
		return &judged, nil
	})
	return r.beside != nil, err
}

// settle waits for the evaluation that takes place beside training. So it is of the last epoch that was evaluated, and takes no longer than
// that was trained ahead.
func (r *run[D]) settle(ctx context.Context) error {
	if r.beside == nil {
		return nil
	}
	s, err := r.beside(ctx)
	if r.beside = nil; err != nil {
		return err
	}
	r.past.replace(s) // at nodes that did not evaluate
	r.take(s)
	return nil
}

// judge evaluates the model behind the last epoch of a state, and adds that to the state.
func (r *run[D]) judge(ctx context.Context, env *Env, s *State) error {
	ev, err := r.task.Evaluate(ctx, env, s.Epochs)
	if err != nil {
		return fmt.Errorf("train: evaluation after epoch %d: %w", s.Epochs, err)
	}
	if len(ev.Metrics) == 0 {
		return fmt.Errorf("train: evaluation after epoch %d returned no metric", s.Epochs)
	}
	s.Evaluated, s.Results = append(s.Evaluated, s.Epochs), append(s.Results, ev)
	if better(&ev, &s.Results[s.Best]) {
		s.Best = len(s.Results) - 1
	}
	return nil
}

// take takes the evaluations of a state.
func (r *run[D]) take(s *State) {
	r.rep.Evaluated, r.rep.Results, r.rep.Best = s.Evaluated, s.Results, s.Best
}
