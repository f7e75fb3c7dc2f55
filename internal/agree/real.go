package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/internal/events"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/slownet"
	"github.com/godwit-ps/godwit/job"
)

// A real is what came of a run of processes.
type real struct {
	spec   job.Spec
	epochs []time.Duration
	frames uint64 // of all epochs
	// proxies is the processor time that this process took for a frame, and latency
	// the lower quartile of the times of a byte's way through it while the nodes
	// trained.
	proxies, latency time.Duration
}

// train runs a task on processes whose connections go through a network.
func train(ctx context.Context, binary, args, policy string, nodes int, n *slownet.Network) (r *real, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r = &real{}
	places := make([][]string, nodes)
	for i := range places {
		listen, err := freeAddress()
		if err != nil {
			return nil, err
		}
		advertise, err := n.Listen(listen)
		if err != nil {
			return nil, err
		}
		places[i] = []string{"--listen", listen, "--advertise", advertise}
	}
	lead := append([]string{"train"}, strings.Fields(args)...)
	lead = append(lead, "--nodes", fmt.Sprint(nodes), "--workers", "1", "--policy", policy, "--untrained=false", "--quiet", "--json", "--await", "--etcd-listen", "127.0.0.1:0")
	before := host.ProcessorTime()
	var looking sync.WaitGroup
	training := make(chan struct{})
	looks, stopLooking := context.WithCancel(ctx)
	looking.Go(func() {
		select {
		case <-training:
		case <-looks.Done():
			return
		}
		ways, err := latencies(looks, n)
		if err != nil {
			cancel(err)
			return
		}
		slices.Sort(ways)
		r.latency = ways[len(ways)/4] // more is waiting for a processor, which is simulated
	})
	defer looking.Wait()
	defer stopLooking()
	var joining sync.WaitGroup
	defer joining.Wait()
	err = events.Run(ctx, binary, append(lead, places[0]...), nil, func(e *job.Event) error {
		switch {
		case e.Waiting != nil:
			for _, place := range places[1:] {
				join := append([]string{"node", "--etcd", strings.Join(e.Waiting.Endpoints, ","), "--run", e.Run, "--quiet"}, place...)
				token := job.TokenEnv + "=" + e.Waiting.Token
				joining.Go(func() {
					if err := events.Run(ctx, binary, join, []string{token}, func(*job.Event) error { return nil }); err != nil {
						cancel(err)
					}
				})
			}
		case e.Start != nil:
			before = host.ProcessorTime()
			close(training)
			r.spec, err = job.Decode(e.Start.Spec)
			return err
		case e.Epoch != nil:
			r.epochs = append(r.epochs, time.Duration(e.Epoch.Seconds*float64(time.Second)))
			r.frames += e.Epoch.Stats.Frames
		}
		return nil
	})
	stopLooking()
	looking.Wait()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = errors.Join(cause, err)
	}
	if err == nil && (len(r.epochs) < 2 || r.frames == 0) {
		err = fmt.Errorf("%d epochs with %d frames, want two with some", len(r.epochs), r.frames)
	}
	if err == nil {
		r.proxies = (host.ProcessorTime() - before) / time.Duration(r.frames)
	}
	return r, err
}

// freeAddress is one of loopback at which nobody listens now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// latencies are times of a byte's way through a proxy, until the context ends.
func latencies(ctx context.Context, n *slownet.Network) (ways []time.Duration, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	addr, err := n.Listen(l.Addr().String())
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for len(ways) == 0 || ctx.Err() == nil {
		began := time.Now()
		if _, err := c.Write([]byte{1}); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return nil, err
		}
		ways = append(ways, time.Since(began)/2)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ways, nil
}
