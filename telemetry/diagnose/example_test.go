package diagnose_test

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
)

func Example() {
	r := &record.Run{About: record.About{Policy: "adaptive"}}
	for i, speed := range []int64{100, 100, 55} {
		n := &record.Node{Header: record.Header{Node: godwit.NodeID(i), Workers: 1}}
		for second := range int64(5) {
			n.Samples = append(n.Samples, record.Sample{Time: second * 1e9, Items: second * speed})
		}
		r.Nodes = append(r.Nodes, n)
	}
	for _, f := range diagnose.Diagnose(diagnose.From(r)) {
		fmt.Printf("%s: %s (%.0f %%)\n", f.Ill, f.Text, 100*f.Loss)
	}
	// Output: slow node: node 2 runs at 55 % of the others' speed (15 %)
}
