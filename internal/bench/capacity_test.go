package bench

import (
	"context"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

var (
	capacity = flag.Uint64("capacity", 0, "rows that BenchmarkCapacity makes; 0 skips it")
	floats   = flag.Int("floats", 4, "floats of a row of BenchmarkCapacity")
)

// BenchmarkCapacity makes as many rows as it is told to, once, with as many
// workers as there are cores. Then the workers pull and push random keys, for
// some seconds as a training program would, and for some in which garbage is
// collected ten times a second. It reports how long the rows took, the memory of
// the process, the share of the processors' time that collections took in the
// first part, and how long a collection took and stopped everything in the second.
func BenchmarkCapacity(b *testing.B) {
	if *capacity == 0 {
		b.Skip("say how many rows: -capacity 100000000, and if not of 4 floats: -floats 100")
	}
	for b.Loop() { // once, whatever -benchtime says: the first turn takes longer
	}
	b.ReportMetric(0, "ns/op")
	ctx := context.Background()
	workers := runtime.GOMAXPROCS(0)
	before := resident(b)
	began := time.Now()
	c, err := startLocal(ctx, *capacity, *floats, workers, godwit.Add{})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	defer func() {
		if err := c.Close(ctx); err != nil {
			b.Error(err)
		}
	}()
	runtime.GC()
	b.ReportMetric(took.Seconds(), "s-to-fill")
	b.ReportMetric(float64(took.Nanoseconds())/float64(*capacity), "ns/row")
	b.ReportMetric(float64(resident(b)-before)/(1<<30), "GiB")
	b.ReportMetric(float64(resident(b)-before)/float64(*capacity), "B/row")

	keys := uniformKeys(1, *capacity, workers)
	bufs := buffers(workers, perCall**floats)
	busy := func(d time.Duration, meanwhile func()) (from, to collected) {
		from = collections()
		end := time.Now().Add(d)
		var wg sync.WaitGroup
		for i, w := range c.Nodes[0].Workers() {
			wg.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					ks := keys[i][n%len(keys[i])]
					call := w.Pull
					if n%2 == 1 {
						call = w.Push
					}
					if err := call(ctx, ks, bufs[i]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		for time.Now().Before(end) {
			time.Sleep(100 * time.Millisecond)
			meanwhile()
		}
		wg.Wait()
		runtime.GC() // of the processors' time, the runtime knows what was used up to the last collection
		return from, collections()
	}
	from, to := busy(10*time.Second, func() {})
	b.ReportMetric(100*(to.cpu-from.cpu)/(to.all-from.all), "%-of-processors-in-collections")
	from, to = busy(5*time.Second, runtime.GC)
	b.ReportMetric(float64(to.n-from.n), "collections")
	pauses := to.since(from)
	b.ReportMetric(float64(pauses[len(pauses)/2].Nanoseconds())/1e3, "µs-paused-median")
	b.ReportMetric(float64(pauses[len(pauses)-1].Nanoseconds())/1e3, "µs-paused-longest")
	b.ReportMetric(1e3*(to.cpu-from.cpu)/float64(to.n-from.n), "processor-ms-a-collection")
}

// resident is the memory that the process has in use.
func resident(b *testing.B) int64 {
	s, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("the system does not say how much memory the process has: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(s))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

type collected struct {
	n        uint64
	cpu, all float64         // seconds of processor time
	paused   []time.Duration // in the last 256 collections, the latest first
}

func collections() collected {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(s)
	var g debug.GCStats
	debug.ReadGCStats(&g)
	return collected{uint64(g.NumGC), s[0].Value.Float64(), s[1].Value.Float64(), g.Pause}
}

// since returns how long the world stood still in each collection since another
// moment, in both of a collection's pauses together, the longest last. There were
// some.
func (c collected) since(earlier collected) []time.Duration {
	pauses := slices.Clone(c.paused[:min(int(c.n-earlier.n), len(c.paused))])
	slices.Sort(pauses)
	return pauses
}
