package record_test

import (
	"fmt"
	"os"

	"github.com/godwit-ps/godwit/telemetry/record"
)

func Example() {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := record.Create(record.Config{Dir: dir, Header: record.Header{Run: "mine", Node: 0, Nodes: 1, Workers: 2}})
	if err != nil {
		panic(err)
	}
	w.Add(record.Sample{Time: 0})
	w.Add(record.Sample{Time: 1e9, Items: 500, Waits: []record.Wait{{For: "answers", N: 3, Time: 5e8}}})
	if err := w.Close(); err != nil {
		panic(err)
	}

	r, err := record.Open(dir)
	if err != nil {
		panic(err)
	}
	n := r.Nodes[0]
	u := n.Samples[1].Since(&n.Samples[0], n.Header.Workers)
	fmt.Printf("%d examples, %.1f s of computing, %.1f s of waiting for answers\n", u.Items, u.Compute, u.Waits["answers"])
	// Output: 500 examples, 1.5 s of computing, 0.5 s of waiting for answers
}
