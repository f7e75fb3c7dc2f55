package node_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A worker reaches a key of another node by messages, unless it announced the key:
// then the key moves to the worker's node in time, and accesses are local.
func ExampleLocal() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	model, err := godwit.NewModel(godwit.Table{Name: "counters", Rows: 100, Dim: 1})
	if err != nil {
		panic(err)
	}
	c, err := node.Local(ctx, 2, node.Config{Model: model, Workers: 1})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	here, there := c.Nodes[0], c.Nodes[1]
	w, value := here.Worker(0), make([]float32, 1)
	key := []godwit.Key{0}
	for here.Home(key[0]) == 0 { // find a key that is at node 1
		key[0]++
	}
	push := func(times int) {
		before := here.Stats()
		for range times {
			if err := w.Push(ctx, key, []float32{1}); err != nil {
				panic(err)
			}
		}
		fmt.Printf("%d of %d pushes by message\n", here.Stats().Sub(before).Remote, times)
	}
	push(10)
	if err := w.Intent(key, w.Clock(), godwit.Forever); err != nil {
		panic(err)
	}
	for !w.PullIfLocal(key[0], value) {
		time.Sleep(time.Millisecond) // load the next data meanwhile
	}
	push(1000)
	if err := w.WaitSync(ctx); err != nil { // what was pushed here is at the owner, wherever that is
		panic(err)
	}
	if err := there.Worker(0).Pull(ctx, key, value); err != nil {
		panic(err)
	}
	fmt.Println("node 1 reads", value[0])
	// Output:
	// 10 of 10 pushes by message
	// 0 of 1000 pushes by message
	// node 1 reads 1010
}

// Two nodes of a cluster connect by sockets. Each would be a process of its own; they
// would meet at an etcd (package coord/etcd) instead of a hub.
func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	model, err := godwit.NewModel(godwit.Table{Name: "counters", Rows: 100, Dim: 1})
	if err != nil {
		panic(err)
	}
	config := node.Config{Model: model, Workers: 1, Run: "example"}
	hub, err := mem.New(coord.Config{Run: config.Run, Nodes: 2, Fingerprint: config.Fingerprint()}) // nodes that differ are told in what
	if err != nil {
		panic(err)
	}

	process := func() error {
		network := tcp.Network{}
		listener, err := network.Listen("127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		session, err := hub.Join(ctx, listener.Addr())
		if err != nil {
			return err
		}
		defer session.Close(ctx)
		cfg := config
		cfg.Session, cfg.Network, cfg.Listener = session, network, listener
		n, err := node.Start(ctx, cfg)
		if err != nil {
			return err
		}
		w, value := n.Worker(0), make([]float32, 1)
		if err := w.Push(ctx, []godwit.Key{7}, []float32{1}); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if err := w.Pull(ctx, []godwit.Key{7}, value); err != nil {
			return err
		}
		if session.Self() == 0 {
			fmt.Println("pushes of both nodes:", value[0])
		}
		return n.Close(ctx)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := process(); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output: pushes of both nodes: 2
}
