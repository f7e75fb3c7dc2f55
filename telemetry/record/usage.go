package record

import "slices"

// A Usage says where the time of a node's workers went between two samples. Times are in seconds,
// summed over workers, but for Seconds and Pauses.
type Usage struct {
	Seconds float64            // between the samples
	Items   int64              // examples trained
	Steps   int64              // of workers
	Compute float64            // not waiting in a call; other waits, such as for work, are in it
	Waits   map[string]float64 // by cause
	Server  float64            // processor time of what is neither worker nor collection of garbage; an estimate, which is too low where processes take each other's processor
	GC      float64            // processor time of the collection of garbage
	Pauses  float64            // for which garbage collection stopped everything
	Waited  float64            // the sum of Waits
}

// Since returns where the time of a node with so many workers went since an earlier sample of it.
func (s *Sample) Since(b *Sample, workers int) Usage {
	u := Usage{Seconds: seconds(s.Time - b.Time), Items: s.Items - b.Items, Steps: s.Steps - b.Steps, Waits: map[string]float64{},
		GC: seconds(s.Process.GC - b.Process.GC), Pauses: seconds(s.Process.Pauses - b.Process.Pauses)}
	for _, w := range s.Waits {
		i := slices.IndexFunc(b.Waits, func(x Wait) bool { return x.For == w.For })
		d := w.Time
		if i >= 0 {
			d -= b.Waits[i].Time
		}
		u.Waits[w.For] = seconds(d)
		u.Waited += seconds(d)
	}
	if all := seconds(s.Process.Processor - b.Process.Processor); all > 0 {
		u.GC = min(u.GC, all) // Go's estimate has time in which other processes had the processors
	}
	u.Compute = max(0, u.Seconds*float64(workers)-u.Waited)
	u.Server = max(0, seconds(s.Process.Processor-b.Process.Processor)-u.Compute-u.GC)
	return u
}

func seconds(nanos int64) float64 { return float64(nanos) / 1e9 }
