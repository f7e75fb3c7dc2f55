package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/train/task"
	tmem "github.com/godwit-ps/godwit/transport/mem"
)

// Local runs all nodes of a job, a run with a name, in this process and returns the
// result. The configuration is that of each of them, but only node 0 emits events,
// exports, and profiles the process.
func Local(ctx context.Context, run string, spec Spec, cfg NodeConfig) (r *Result, err error) {
	begin := time.Now()
	if err := spec.saveBeside(&cfg); err != nil {
		return nil, err
	}
	spec.Traced = "" // all nodes see the folder
	t, err := cfg.prepare(ctx, &spec, run)
	defer func() { cfg.release(ctx, r, err) }()
	if err != nil {
		return nil, err
	}
	hub, err := cmem.New(coord.Config{Run: run, Nodes: spec.Nodes})
	if err != nil {
		return nil, err
	}
	sw := &tmem.Switch{}
	results, errs := make([]*Result, spec.Nodes), make([]error, spec.Nodes)
	var wg sync.WaitGroup
	for i := range spec.Nodes {
		wg.Go(func() {
			r, self, err := localNode(ctx, &spec, cfg, run, begin, t, hub, sw, i)
			if errs[i] = err; err == nil {
				results[self] = r
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, errs[first(errs, i)]
		}
	}
	return results[0], nil
}

// first returns the index of an error that says more than that a node left
// because another one failed.
func first(errs []error, i int) int {
	for j, err := range errs {
		if err != nil && !errors.Is(err, coord.ErrFailed) && !errors.Is(err, godwit.ErrPeerLost) {
			return j
		}
	}
	return i
}

// localNode joins, runs one node, and returns its id as well.
func localNode(ctx context.Context, spec *Spec, cfg NodeConfig, run string, begin time.Time, t task.Task, hub *cmem.Hub, sw *tmem.Switch, i int) (*Result, godwit.NodeID, error) {
	l, err := sw.Listen(fmt.Sprintf("%s-%d", run, i))
	if err != nil {
		return nil, godwit.NoNode, err
	}
	defer l.Close()
	s, err := hub.Join(ctx, l.Addr())
	if err != nil {
		return nil, godwit.NoNode, err
	}
	cfg.leads = s.Self() == 0
	if s.Self() != 0 {
		cfg.Export, cfg.Profile, cfg.Progress, cfg.Tick, cfg.initial = "", "", nil, 0, nil
		cfg.saver = nil
	}
	r, err := newPart(spec, &cfg, run, begin, t, s).execute(ctx, sw, l)
	if cerr := s.Close(context.WithoutCancel(ctx)); err == nil {
		err = cerr
	}
	return r, s.Self(), err
}
