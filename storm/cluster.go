package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// patience is how long a storm of seconds may take. Who waits longer hangs.
const patience = 5 * time.Minute

// inProcess runs a storm on nodes of this process.
func inProcess(ctx context.Context, p *plan, c *counts) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := local
	c.memory.Add(1)
	if p.tcp {
		start = overTCP
		c.memory.Add(-1)
		c.tcp.Add(1)
	}
	nodes, err := start(ctx, p)
	if err != nil {
		return errors.Join(err, closeAll(ctx, nodes))
	}
	j := newJudge(p, c)
	err = work(ctx, j, nodes)
	for _, n := range nodes {
		c.met(n.Stats())
	}
	if err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel() // the others are not waited for
		_ = closeAll(ended, nodes)
		return err
	}
	return errors.Join(closeAll(ctx, nodes), j.fits())
}

func local(ctx context.Context, p *plan) ([]*node.Node, error) {
	c, err := node.Local(ctx, p.nodes, p.config())
	if err != nil {
		return nil, err
	}
	return c.Nodes, nil
}

func overTCP(ctx context.Context, p *plan) ([]*node.Node, error) {
	cfg := p.config()
	hub, err := mem.New(coord.Config{Run: "storm", Nodes: p.nodes, Fingerprint: cfg.Fingerprint()})
	if err != nil {
		return nil, err
	}
	nodes, errs := make([]*node.Node, p.nodes), make([]error, p.nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			nodes[i], errs[i] = startTCP(ctx, cfg, func(addr string) (coord.Session, error) { return hub.Join(ctx, addr) })
		})
	}
	wg.Wait()
	return nodes, errors.Join(errs...)
}

// startTCP starts a node that listens on loopback.
func startTCP(ctx context.Context, cfg node.Config, join func(addr string) (coord.Session, error)) (*node.Node, error) {
	var nw tcp.Network
	l, err := nw.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	cfg.Run, cfg.Network, cfg.Listener = "storm", nw, l
	if cfg.Session, err = join(l.Addr()); err != nil {
		return nil, err
	}
	return node.Start(ctx, cfg)
}

// work lets all workers of some nodes work, and returns the first error.
func work(ctx context.Context, j *judge, nodes []*node.Node) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for _, n := range nodes {
		for _, w := range n.Workers() {
			wg.Go(func() {
				if err := j.worker(w).run(ctx); err != nil {
					once.Do(func() {
						first = fmt.Errorf("%v: %w", w.ID(), err)
						cancel(first)
					})
				}
			})
		}
	}
	wg.Wait()
	return first
}

// closeAll closes nodes at a time, as each waits for the others.
func closeAll(ctx context.Context, nodes []*node.Node) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if n != nil {
			wg.Go(func() { errs[i] = n.Close(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
