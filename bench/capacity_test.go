package bench

import (
	"context"
	"flag"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

var capacity = flag.Uint64("capacity", 0, "rows of 4 floats that BenchmarkCapacity makes; 0 skips it")

// BenchmarkCapacity makes as many rows as it is told to, once, with as many
// workers as there are cores. Then the workers pull and push random keys for
// some seconds, and garbage is collected all the time. It reports how long the
// rows took, the memory of the process, and the pauses and the share of the
// processors' time that collections took.
func BenchmarkCapacity(b *testing.B) {
	if *capacity == 0 {
		b.Skip("say how many rows: -capacity 100000000")
	}
	for b.Loop() { // once, whatever -benchtime says: the first turn takes longer
	}
	b.ReportMetric(0, "ns/op")
	ctx := context.Background()
	workers := runtime.GOMAXPROCS(0)
	before := resident(b)
	began := time.Now()
	c, err := startLocal(ctx, *capacity, 4, workers, godwit.Add{})
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
	bufs := buffers(workers, perCall*4)
	from := collections()
	end := time.Now().Add(5 * time.Second)
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
	for n := 0; time.Now().Before(end); n++ {
		time.Sleep(100 * time.Millisecond)
		runtime.GC()
	}
	wg.Wait()
	to := collections()
	b.ReportMetric(float64(to.n-from.n), "collections")
	b.ReportMetric(to.longest(from)*1e6, "longest-pause-µs-at-most")
	b.ReportMetric(100*(to.cpu-from.cpu)/(to.all-from.all), "%-of-processors-in-collections")
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
	cpu, all float64 // seconds of processor time
	pauses   *metrics.Float64Histogram
}

func collections() collected {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(s)
	return collected{s[0].Value.Uint64(), s[1].Value.Float64(), s[2].Value.Float64(), s[3].Value.Float64Histogram()}
}

// longest is a bound of the longest pause since another moment, in seconds.
func (c collected) longest(since collected) float64 {
	for i := len(c.pauses.Counts) - 1; i >= 0; i-- {
		if c.pauses.Counts[i] > since.pauses.Counts[i] {
			return c.pauses.Buckets[i+1]
		}
	}
	return 0
}
