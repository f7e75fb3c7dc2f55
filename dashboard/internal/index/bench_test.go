//go:build unix

package index

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

var (
	manyEvents = flag.Int("events", 1_000_000, "of the trace of BenchmarkIndex")
	manyKeys   = flag.Int("keys", 100_000, "of the trace of BenchmarkIndex")
)

// large makes up the trace of a run of an hour of four nodes: refreshes, accesses, moves and replicas of keys, of which some are hot.
func large(b *testing.B, events, keys int) string {
	b.Helper()
	dir := b.TempDir()
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: uint64(keys), Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		b.Fatal(err)
	}
	ks, err := trace.ParseKeys("", m)
	if err != nil {
		b.Fatal(err)
	}
	const nodes = 4
	var ws [nodes]*trace.Writer
	for n := range ws {
		if ws[n], err = trace.Create(trace.Config{Dir: dir, Keys: ks, Plain: true, Header: trace.Header{Run: "large", Policy: "adapm", Node: godwit.NodeID(n), Nodes: nodes, Start: 1e18, Tables: trace.TablesOf(m)}}); err != nil {
			b.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	hot := rand.NewZipf(rng, 1.1, 10, uint64(keys-1))
	owner, epoch := make([]int, keys), make([]godwit.Epoch, keys)
	copies := make([][nodes]bool, keys)
	for k := range owner {
		owner[k] = k % nodes
		ws[k%nodes].Add(trace.Event{Key: godwit.Key(k), Node: godwit.NodeID(k % nodes), Kind: trace.Created})
	}
	step := int64(time.Hour) / int64(events)
	for i := keys; i < events; i++ {
		at, k, n := int64(i)*step, int(hot.Uint64()), rng.IntN(nodes)
		if rng.IntN(2) == 0 {
			k = rng.IntN(keys)
		}
		e := trace.Event{Time: at, Key: godwit.Key(k), Node: godwit.NodeID(n), Peer: godwit.NodeID(owner[k]), Epoch: epoch[k]}
		switch r := rng.IntN(10); {
		case r < 4:
			e.Kind, e.N = trace.Accessed, 5
		case n == owner[k]:
			e.Kind, e.N = trace.Accessed, 9
		case copies[k][n] && r < 8:
			e.Kind = trace.Refreshed
		case copies[k][n]:
			e.Kind, copies[k][n] = trace.Ended, false
		case r < 8:
			e.Kind, copies[k][n] = trace.Copied, true
		default:
			o := owner[k]
			ws[o].Add(trace.Event{Time: at, Key: e.Key, Node: godwit.NodeID(o), Peer: e.Node, Epoch: epoch[k], Kind: trace.Left})
			owner[k] = n
			epoch[k]++
			e.Kind, e.Epoch = trace.Arrived, epoch[k]
		}
		ws[n].Add(e)
	}
	for _, w := range ws {
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// processor returns the processor time of this process: on a machine that others use, too, times on the wall mean little.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIndex measures what a page waits for. With -events 100000000 it is a trace of 2 GB, in a folder within TMPDIR.
func BenchmarkIndex(b *testing.B) {
	dir := large(b, *manyEvents, *manyKeys)
	b.ResetTimer()
	for b.Loop() {
		runtime.GC()
		debug.FreeOSMemory()
		begin, since := processor(), time.Now()
		ix, err := Open(dir, false)
		if err != nil {
			b.Fatal(err)
		}
		report := func(what string, do func() error) {
			at := processor()
			if err := do(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64((processor()-at).Microseconds())/1000, what+"-cpu-ms")
		}
		b.ReportMetric(float64((processor()-begin).Microseconds())/1000, "open-cpu-ms")
		for more := true; more; {
			if more, err = ix.Poll(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((processor() - begin).Seconds(), "all-cpu-s")
		b.ReportMetric(time.Since(since).Seconds(), "all-s")
		var worst, longest [4]time.Duration // processor time, and by the clock
		timed := func(i int, do func() error) {
			at, since := processor(), time.Now()
			if err := do(); err != nil {
				b.Fatal(err)
			}
			worst[i], longest[i] = max(worst[i], processor()-at), max(longest[i], time.Since(since))
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for range 10 {
			at := rng.Int64N(36e11)
			timed(0, func() error { _, err := ix.At(b.Context(), Selection{}, at, 0, 0); return err })
			timed(1, func() error {
				_, err := ix.Tile(b.Context(), Selection{}, Range{To: 36e11, Cols: 1200, Rows: 600})
				return err
			})
			timed(2, func() error {
				_, err := ix.Tile(b.Context(), Selection{}, Range{From: at, To: at + 5e9, Cols: 1200, Rows: 600})
				return err
			})
			timed(3, func() error {
				_, err := ix.Tile(b.Context(), Selection{}, Range{From: at, To: at + 6e11, Cols: 1200, Rows: 600, Limit: 1000})
				return err
			})
		}
		for i, name := range []string{"instant", "tile", "zoom-5s", "zoom-10min"} {
			b.ReportMetric(float64(worst[i].Microseconds())/1000, "most-"+name+"-cpu-ms")
			b.ReportMetric(float64(longest[i].Microseconds())/1000, "most-"+name+"-ms")
		}
		report("life", func() error { _, err := ix.Life(b.Context(), 17); return err })
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.Sys-mem.HeapReleased)/1e6, "memory-MB")
		if err := ix.Close(); err != nil {
			b.Fatal(err)
		}
		fmt.Printf("windows of %v, %d columns\n", time.Duration(ix.grid.width), len(ix.grid.columns))
	}
}
