package trace_test

import (
	"fmt"
	"os"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A key moves from node 0 to node 1, where it is used.
func Example() {
	m, err := godwit.NewModel(godwit.Table{Name: "weights", Rows: 10, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for n, events := range [][]trace.Event{
		{{Key: 3, Kind: trace.Created}, {Time: 1e9, Key: 3, Kind: trace.Left, Peer: 1}},
		{{Time: 1e9, Key: 3, Node: 1, Kind: trace.Arrived, Epoch: 1}, {Time: 3e9, Key: 3, Node: 1, Kind: trace.Accessed, N: 5}},
	} {
		keys, err := trace.ParseKeys("weights:3", m)
		if err != nil {
			panic(err)
		}
		w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Header: trace.Header{Run: "r", Policy: "relocate", Node: godwit.NodeID(n), Nodes: 2, Tables: trace.TablesOf(m)}})
		if err != nil {
			panic(err)
		}
		for _, e := range events {
			w.Add(e)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
	t, err := trace.Open(dir)
	if err != nil {
		panic(err)
	}
	l, err := t.Life(3)
	if err != nil {
		panic(err)
	}
	if err := l.Explain(os.Stdout, &t.Header); err != nil {
		panic(err)
	}
	has, err := t.At(1, 2e9)
	fmt.Println(has[3].Main, err)
	// Output:
	// key 3 (weights:3) of run r, policy relocate, 2 nodes
	// it moved 1 time; since 1.000 s it is at node 1
	//   epoch 0: node 0 from 0.000 s, for 1.000 s
	//   epoch 1: node 1 from 1.000 s, for 2.000 s
	// node 0: owned it 33 % of the time, it moved here 0 times; 0 replicas, refreshed 0 times; 0 intents; 0 accesses
	// node 1: owned it 67 % of the time, it moved here 1 time; 0 replicas, refreshed 0 times; 0 intents; 5 accesses
	// true <nil>
}
