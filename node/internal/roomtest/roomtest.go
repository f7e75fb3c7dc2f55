// Package roomtest is what tests of a node's rooms share.
package roomtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Seed is that of the random tests.
var Seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

// Patience is how long a test waits for what must come. It is far more than needed:
// machines that run tests are busy.
const Patience = 4 * time.Minute

// Main names the seed where a test fails, whatever its message says.
func Main(m *testing.M) {
	code := m.Run()
	if code != 0 {
		fmt.Printf("the tests ran with -seed %d\n", *Seed)
	}
	os.Exit(code)
}

// Background returns a context that ends with the test, or after Patience.
func Background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Must fails the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("-seed %d: %v", *Seed, err)
	}
}

// Eventually waits until ok.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Protocol returns what the shards of a node are to know of a run of so many nodes, and
// of its tables. There are 2^shift shards.
func Protocol(t testing.TB, self godwit.NodeID, nodes int, policy placement.Policy, shift uint, tables ...godwit.Table) *protocol.Config {
	t.Helper()
	m, err := godwit.NewModel(tables...)
	Must(t, err)
	ids := make([]godwit.NodeID, nodes)
	for i := range ids {
		ids[i] = godwit.NodeID(i)
	}
	c := &protocol.Config{Self: self, Model: m, Policy: policy, Homes: directory.NewHomes(m.Keys(), ids), Nodes: nodes, Hints: true, Shift: shift}
	Must(t, c.Prepare())
	return c
}

// Records returns what is in the frames that take gives, until that gives an empty one.
// Take may use the memory of the frame before.
func Records(t testing.TB, d *wire.Decoder, take func(buf []byte) []byte) (rs []wire.Record) {
	t.Helper()
	for f := take(nil); len(f) > 0; f = take(f) {
		Must(t, d.Reset(f))
		for {
			var r wire.Record
			more, err := d.Next(&r)
			Must(t, err)
			if !more {
				break
			}
			rs = append(rs, r)
		}
	}
	return rs
}
