package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// remoteCases are accesses to keys of another node of this process, over TCP of
// this machine.
func remoteCases() []Case {
	return []Case{
		{Name: "remote/pull/one key, 100 floats", Aim: 1.3, setup: setupOneKey},
		{Name: "remote/pull/100 keys of 100 floats, pipelined", Aim: 2, setup: func(ctx context.Context, o *Options) (*Comparison, error) {
			return setupStream(ctx, "pull")
		}},
		{Name: "remote/push/100 keys of 100 floats, pipelined", Aim: 2, setup: func(ctx context.Context, o *Options) (*Comparison, error) {
			return setupStream(ctx, "push")
		}},
		{Name: "remote/localize/100 floats", setup: setupMoves},
	}
}

// startTCP starts nodes of one worker that talk over sockets.
func startTCP(ctx context.Context, nodes int, cfg node.Config) (*node.Cluster, error) {
	const run = "bench"
	hub, err := mem.New(coord.Config{Run: run, Nodes: nodes})
	if err != nil {
		return nil, err
	}
	c := &node.Cluster{Nodes: make([]*node.Node, nodes), Hub: hub}
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			cfg := cfg
			cfg.Run, cfg.Workers, cfg.Network = run, 1, tcp.Network{}
			if cfg.Listener, errs[i] = cfg.Network.Listen("127.0.0.1:0"); errs[i] != nil {
				return
			}
			defer cfg.Listener.Close()
			if cfg.Session, errs[i] = hub.Join(ctx, cfg.Listener.Addr()); errs[i] != nil {
				return
			}
			c.Nodes[cfg.Session.Self()], errs[i] = node.Start(ctx, cfg)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// startPair starts two nodes that do not share a key, and returns keys of the
// second.
func startPair(ctx context.Context, rows uint64, dim, want int) (*node.Cluster, []godwit.Key, error) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		return nil, nil, err
	}
	c, err := startTCP(ctx, 2, node.Config{Model: m, Policy: placement.Static})
	if err != nil {
		return nil, nil, err
	}
	var there []godwit.Key
	for k := godwit.Key(0); m.Has(k) && len(there) < want; k++ {
		if c.Nodes[0].Home(k) == 1 {
			there = append(there, k)
		}
	}
	if len(there) < want {
		return nil, nil, errors.Join(fmt.Errorf("%d of %d keys have their home at node 1, want %d", len(there), rows, want), c.Close(ctx))
	}
	return c, there, nil
}

func setupOneKey(ctx context.Context, _ *Options) (*Comparison, error) {
	const dim, asks = 100, 100
	c, there, err := startPair(ctx, 10_000, dim, asks)
	if err != nil {
		return nil, err
	}
	const ask, answer = 32, 32 + 4*dim
	raw, err := pingPong(ask, answer)
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	w, dst := c.Nodes[0].Worker(0), make([]float32, dim)
	in, out := make([]byte, answer), make([]byte, ask)
	return &Comparison{
		Units: asks, Unit: "pull",
		Path: func() error {
			for i := range asks {
				if err := w.Pull(ctx, there[i:i+1], dst); err != nil {
					return err
				}
			}
			return nil
		},
		Baselines: []Baseline{{"TCP ping-pong", func() error {
			for range asks {
				if _, err := raw.Write(out); err != nil {
					return err
				}
				if _, err := io.ReadFull(raw, in); err != nil {
					return err
				}
			}
			return nil
		}}},
		Close: func() error { return errors.Join(raw.Close(), c.Close(ctx)) },
	}, nil
}

// pingPong connects to an echo that reads messages of ask bytes and answers
// each with one of answer bytes. The echo ends with the connection.
func pingPong(ask, answer int) (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	peer, ok := <-accepted
	if !ok {
		return nil, errors.Join(errors.New("the echo did not accept"), c.Close())
	}
	go func() {
		defer peer.Close()
		in, out := make([]byte, ask), make([]byte, answer)
		for {
			if _, err := io.ReadFull(peer, in); err != nil {
				return
			}
			if _, err := peer.Write(out); err != nil {
				return
			}
		}
	}()
	return c, nil
}

const (
	streamCalls = 200
	streamDepth = 16 // calls under way
)

func setupStream(ctx context.Context, op string) (*Comparison, error) {
	const dim = 100
	c, there, err := startPair(ctx, 20_000, dim, 8000)
	if err != nil {
		return nil, err
	}
	const values = 4 * perCall * dim
	ask, answer := 8*perCall, 8*perCall
	if op == "push" {
		ask += values
	} else {
		answer += values
	}
	echo, err := frameEcho(ctx, answer)
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	w, bufs, out := c.Nodes[0].Worker(0), buffers(streamDepth, perCall*dim), frame(ask)
	begin := w.PullAsync
	if op == "push" {
		begin = w.PushAsync
	}
	var handles [streamCalls]godwit.Handle
	return &Comparison{
		Units: streamCalls * perCall, Unit: "key",
		Path: func() error {
			return stream(func(i int) (err error) {
				keys := there[i*perCall%(len(there)-perCall):][:perCall]
				handles[i], err = begin(ctx, keys, bufs[i%streamDepth])
				return err
			}, func(i int) error { return w.Wait(ctx, handles[i]) })
		},
		Baselines: []Baseline{{"echo of frames", func() error {
			return stream(func(int) error { return echo.WriteFrame(out) }, func(int) error {
				_, err := echo.ReadFrame()
				return err
			})
		}}},
		Close: func() error { return errors.Join(echo.Close(), c.Close(ctx)) },
	}, nil
}

// stream keeps up to streamDepth calls under way.
func stream(send, wait func(i int) error) error {
	for i := range streamCalls + streamDepth {
		if i >= streamDepth {
			if err := wait(i - streamDepth); err != nil {
				return err
			}
		}
		if i < streamCalls {
			if err := send(i); err != nil {
				return err
			}
		}
	}
	return nil
}

type frames interface {
	WriteFrame([]byte) error
	ReadFrame() ([]byte, error)
	Close() error
}

// frameEcho connects to an echo that answers each frame with one of so many
// bytes, over the transport that nodes use. The echo ends with the connection.
func frameEcho(ctx context.Context, answer int) (frames, error) {
	l, err := tcp.Network{}.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ready := make(chan error, 1)
	secret := make([]byte, transport.MinSecret) // nobody else knows the port
	go func() {
		c, err := l.Accept(ctx, wire.Hello{Run: "echo", From: 1}, secret)
		ready <- err
		if err != nil {
			return
		}
		defer c.Close()
		out := frame(answer)
		for {
			if _, err = c.ReadFrame(); err != nil {
				return
			}
			if err := c.WriteFrame(out); err != nil {
				return
			}
		}
	}()
	c, err := tcp.Network{}.Dial(ctx, l.Addr(), wire.Hello{Run: "echo", From: 0, To: 1}, secret)
	if err != nil {
		return nil, err
	}
	if err := <-ready; err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// frame is a frame of n bytes.
func frame(n int) []byte {
	f := make([]byte, n)
	f[0], f[1], f[2], f[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return f
}

// setupMoves moves all keys to the one node and back. The baseline sends frames
// with as many values, in one direction.
func setupMoves(ctx context.Context, _ *Options) (*Comparison, error) {
	const dim, rows = 100, 10_000
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		return nil, err
	}
	c, err := startTCP(ctx, 2, node.Config{Model: m, Policy: placement.RelocateAll})
	if err != nil {
		return nil, err
	}
	echo, err := frameEcho(ctx, 8*perCall)
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	keys := make([]godwit.Key, rows)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	if err := c.Nodes[1].Worker(0).Localize(ctx, keys); err != nil {
		return nil, errors.Join(err, echo.Close(), c.Close(ctx))
	}
	to := 0
	out := frame(rows * 4 * dim / streamCalls)
	return &Comparison{
		Units: rows, Unit: "key",
		Path: func() error {
			w := c.Nodes[to].Worker(0)
			to = 1 - to
			return w.Localize(ctx, keys)
		},
		Baselines: []Baseline{{"echo of frames", func() error {
			return stream(func(int) error { return echo.WriteFrame(out) }, func(int) error {
				_, err := echo.ReadFrame()
				return err
			})
		}}},
		Close: func() error { return errors.Join(echo.Close(), c.Close(ctx)) },
	}, nil
}
