package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/node"
)

// What a process that is a node is told, beside the seed.
const (
	endpointsVar = "STORM_ENDPOINTS"
	tokenVar     = "STORM_TOKEN"
)

// lease is after how long without a sign of life a process counts as lost: long, as the
// machine may be busy.
const lease = time.Minute

// inProcesses runs a storm on nodes that are processes, which are stopped for a
// while now and then: for less than the time after which they would count as lost.
func inProcesses(ctx context.Context, p *plan, c *counts) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := server.Start(ctx, server.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	c.processes.Add(1)
	cs := make([]*child, p.nodes)
	for i := range cs {
		if cs[i], err = startChild(ctx, p.seed, etcd.Access{Endpoints: e.Endpoints(), Token: e.Token()}); err != nil {
			cancel()
			break
		}
	}
	disturbed, calm := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { disturb(disturbed, p, cs, c) })
	for _, x := range cs {
		if x != nil {
			err = errors.Join(err, x.wait(c))
		}
	}
	calm()
	wg.Wait()
	return err
}

// A child is a process that is a node.
type child struct {
	cmd      *exec.Cmd
	stdin    io.Closer // it ends when this is closed
	out, log bytes.Buffer

	mu    sync.Mutex
	ended bool
}

// startChild starts a node of a storm as a process, which ctx ends. The child is nil if it does not start.
func startChild(ctx context.Context, seed uint64, a etcd.Access) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	x := &child{cmd: exec.CommandContext(ctx, self, "-node", "-seed", strconv.FormatUint(seed, 10))}
	x.cmd.Env = append(os.Environ(), endpointsVar+"="+strings.Join(a.Endpoints, ","), tokenVar+"="+a.Token)
	x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.log
	if x.stdin, err = x.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := x.cmd.Start(); err != nil {
		return nil, fmt.Errorf("a process that is a node does not start: %w", err)
	}
	return x, nil
}

// wait waits for the end of the process and counts what it counted.
func (x *child) wait(c *counts) error {
	err := x.cmd.Wait()
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	if err != nil {
		return fmt.Errorf("process %d: %w\n%s", x.cmd.Process.Pid, err, x.log.Bytes())
	}
	return c.add(x.out.Bytes())
}

// signal sends a signal, unless the process has ended.
func (x *child) signal(s syscall.Signal) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.ended && x.cmd.Process.Signal(s) == nil
}

// disturb stops one process after the other, for 5 to 400 milliseconds each.
func disturb(ctx context.Context, p *plan, cs []*child, c *counts) {
	rng := rand.New(rand.NewPCG(p.seed, 2))
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(rng.Int64N(int64(150*time.Millisecond))))
		x := cs[rng.IntN(len(cs))]
		if x == nil || !x.signal(syscall.SIGSTOP) {
			continue
		}
		c.stops.Add(1)
		sleep(ctx, 5*time.Millisecond+time.Duration(rng.Int64N(int64(395*time.Millisecond))))
		x.signal(syscall.SIGCONT)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// beNode is what a process does that is a node: it prints what it counted.
func beNode(seed uint64) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "the process that started this one is gone")
		os.Exit(1)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := newPlan(seed, true)
	if err != nil {
		return err
	}
	cfg := p.config()
	var session coord.Session
	n, err := startTCP(ctx, cfg, func(addr string) (coord.Session, error) {
		var err error
		a := etcd.Access{Endpoints: strings.Split(os.Getenv(endpointsVar), ","), Token: os.Getenv(tokenVar)}
		session, err = a.Join(ctx, coord.Config{Run: "storm", Nodes: p.nodes, Addr: addr, Fingerprint: cfg.Fingerprint(), TTL: lease})
		return session, err
	})
	if err != nil {
		return err
	}
	c := &counts{}
	j := newJudge(p, c)
	if err := work(ctx, j, []*node.Node{n}); err != nil {
		return err
	}
	c.met(n.Stats())
	if err := errors.Join(n.Close(ctx), session.Close(ctx)); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(c)
}
