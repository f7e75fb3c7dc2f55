package recording

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/telemetry/record"
)

// What the runtime tells of the collection of garbage.
const (
	gcTime   = "/cpu/classes/gc/total:cpu-seconds"
	gcIdle   = "/cpu/classes/gc/mark/idle:cpu-seconds" // of processors that had nothing else to do
	gcPauses = "/sched/pauses/total/gc:seconds"
	heapNow  = "/memory/classes/heap/objects:bytes"
)

// process says what the operating system and the runtime know of this process.
func process() record.Process {
	told := []metrics.Sample{{Name: gcTime}, {Name: gcIdle}, {Name: gcPauses}, {Name: heapNow}}
	metrics.Read(told)
	p := record.Process{Processor: processorTime(), Used: residentIn("/proc/self/statm"), Stalled: stalledIn("/proc/pressure/memory"), Delayed: int64(host.ProcessorWait())}
	if told[0].Value.Kind() == metrics.KindFloat64 && told[1].Value.Kind() == metrics.KindFloat64 {
		p.GC = int64((told[0].Value.Float64() - told[1].Value.Float64()) * 1e9)
	}
	if told[2].Value.Kind() == metrics.KindFloat64Histogram {
		p.Pauses = sumOfPauses(told[2].Value.Float64Histogram())
	}
	if told[3].Value.Kind() == metrics.KindUint64 {
		p.Heap = told[3].Value.Uint64()
	}
	if n := host.Available(); n < math.MaxUint64 {
		p.Available = n
	}
	return p
}

// sumOfPauses returns about how long the pauses of a histogram took together, in nanoseconds.
func sumOfPauses(h *metrics.Float64Histogram) int64 {
	sum := 0.0
	for i, n := range h.Counts {
		if n > 0 && !math.IsInf(h.Buckets[i], 0) {
			sum += float64(n) * h.Buckets[i]
		}
	}
	return int64(sum * 1e9)
}

// residentIn reads how many bytes of memory the process has; 0: it is not told.
func residentIn(file string) uint64 {
	b, _ := os.ReadFile(file)
	if f := bytes.Fields(b); len(f) > 1 {
		n, _ := strconv.ParseUint(string(f[1]), 10, 52)
		return n * uint64(os.Getpagesize())
	}
	return 0
}

// stalledIn reads for how long processes of the machine waited for memory, in nanoseconds; 0: it is
// not told.
func stalledIn(file string) int64 {
	b, _ := os.ReadFile(file)
	line, _, _ := bytes.Cut(b, []byte("\n")) // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"
	_, text, ok := bytes.Cut(line, []byte("total="))
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n * int64(time.Microsecond)
}
