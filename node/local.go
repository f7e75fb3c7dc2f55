package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	tmem "github.com/godwit-ps/godwit/transport/mem"
)

// A Cluster is several nodes in one process, over memory instead of sockets.
type Cluster struct {
	Nodes []*Node   // by number
	Hub   *cmem.Hub // coordinates the run; tests lose nodes by it
}

// Local starts a cluster of n nodes in this process. Session, Network,
// Listener and Run of cfg are set by it.
func Local(ctx context.Context, n int, cfg Config) (*Cluster, error) {
	hub, err := cmem.New(coord.Config{Run: "local", Nodes: n})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Nodes: make([]*Node, n), Hub: hub}
	sw := &tmem.Switch{}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			cfg := cfg
			addr := fmt.Sprintf("local-%d", i)
			l, err := sw.Listen(addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer l.Close()
			cfg.Run, cfg.Network, cfg.Listener = "local", sw, l
			if cfg.Session, err = hub.Join(ctx, addr); err != nil {
				errs[i] = err
				return
			}
			if c.Nodes[cfg.Session.Self()], err = Start(ctx, cfg); err != nil {
				cfg.Session.Fail(err)
				errs[i] = errors.Join(err, cfg.Session.Close(ctx))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// Close closes all nodes.
func (c *Cluster) Close(ctx context.Context) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		if n == nil {
			continue
		}
		wg.Go(func() { errs[i] = errors.Join(n.Close(ctx), n.cfg.Session.Close(ctx)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
