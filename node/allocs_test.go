//go:build !race

package node

// The race detector's build drops pooled memory at random, to find more races.

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Calls that go to other nodes allocate nothing at either end, once queues and
// buffers have grown: no garbage follows the traffic.
func TestRemoteCallsDoNotAllocate(t *testing.T) {
	const dim, per = 100, 100
	c := clusterOver(t, 2, Config{Model: model(t, 20_000, dim), Policy: placement.Static, Workers: 1}, overTCP)
	w := c.Nodes[0].Worker(0)
	there := homedAt(t, c.Nodes[0], 1, 8000)
	ctx := context.Background()
	buf := make([]float32, per*dim)
	hs := make([]godwit.Handle, 4)
	next := 0
	keys := func(n int) []godwit.Key {
		next = (next + n) % (len(there) - n)
		return there[next:][:n]
	}
	for i := 0; i < len(there); i += per {
		must(t, w.Pull(ctx, there[i:][:per], buf)) // the rows are there from now on
	}
	for what, call := range map[string]func(){
		"pull of one key":  func() { must(t, w.Pull(ctx, keys(1), buf[:dim])) },
		"pull of 100 keys": func() { must(t, w.Pull(ctx, keys(per), buf)) },
		"push of 100 keys": func() { must(t, w.Push(ctx, keys(per), buf)) },
		"set of 100 keys":  func() { must(t, w.Set(ctx, keys(per), buf)) },
		"4 pulls in flight": func() {
			for i := range hs {
				var err error
				hs[i], err = w.PullAsync(ctx, keys(per), buf)
				must(t, err)
			}
			must(t, w.Wait(ctx, hs...))
		},
	} {
		for range 200 { // each list of keys twice, and then it is remembered
			call()
		}
		// Requests that the writer begins to send while they are put in travel in
		// two parts, with lists of keys that are new. So what counts is the least.
		n := testing.AllocsPerRun(100, call)
		for i := 0; i < 10 && n > 0; i++ {
			n = testing.AllocsPerRun(100, call)
		}
		if n > 0 {
			t.Errorf("%s: %v allocations a call", what, n)
		}
	}
}
