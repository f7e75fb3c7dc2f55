package metrics_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/metrics"
)

// A program that starts its nodes itself serves the metrics of one.
func Example() {
	ctx := context.Background()
	m, err := godwit.NewModel(godwit.Table{Name: "weights", Rows: 10, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		panic(err)
	}
	c, err := node.Local(ctx, 1, node.Config{Model: m, Workers: 1})
	if err != nil {
		panic(err)
	}
	s, err := metrics.Serve(c.Nodes[0], metrics.Config{Addr: ":0", Run: "example"})
	if err != nil {
		panic(err)
	}
	s.Ready()
	r, err := http.Get("http://" + s.Addr() + "/readyz")
	if err != nil {
		panic(err)
	}
	r.Body.Close()
	fmt.Println(r.StatusCode)
	if err := s.Close(ctx); err != nil {
		panic(err)
	}
	if err := c.Close(ctx); err != nil {
		panic(err)
	}
	// Output: 200
}
