package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Threads run turns in parallel: each goroutine has a thread of its own that is
// pinned to a processor, where the system allows that. The clock of a turn starts
// when all of them are ready, because waking a goroutine on another processor takes
// as long as hundreds of accesses.
//
// On a busy machine the goroutines of a turn often do not run at the same time: one
// waits for its processor, or begins when the other has finished. Such turns do not
// show what two processors can do, and clock reports that they do not count.
type threads struct {
	begin []chan func(worker int)
	done  chan struct{}
	wg    sync.WaitGroup
	ready atomic.Int32
	all   int32
	spans []span
	took  time.Duration
	ok    bool
}

// A span is when one goroutine ran its part of a turn.
type span struct {
	from, to time.Time
	ran      int64 // nanoseconds of its thread on a processor; 0: unknown
}

func newThreads(members int) *threads {
	c := &threads{begin: make([]chan func(int), members), done: make(chan struct{}), spans: make([]span, members)}
	for i := range c.begin {
		c.begin[i] = make(chan func(int))
		c.wg.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			pin(i)
			for f := range c.begin[i] {
				c.span(i, f)
				c.done <- struct{}{}
			}
		})
	}
	return c
}

func (c *threads) span(i int, f func(int)) {
	c.ready.Add(1)
	for n := 1; c.ready.Load() < c.all; n++ {
		if n%10_000 == 0 {
			runtime.Gosched() // there may be fewer processors than goroutines
		}
	}
	s := &c.spans[i]
	began := threadTime()
	s.from = time.Now()
	f(i)
	s.to = time.Now()
	s.ran = threadTime() - began
}

// turn has the first goroutines call f, and measures how long they take.
func (c *threads) turn(members int, f func(worker int)) {
	c.ready.Store(0)
	c.all = int32(members)
	for _, b := range c.begin[:members] {
		b <- f
	}
	for range members {
		<-c.done
	}
	c.took, c.ok = parallel(c.spans[:members])
}

// clock is the time that the last turn took, and whether it counts.
func (c *threads) clock() (time.Duration, bool) { return c.took, c.ok }

// close ends the goroutines. The receiver may be nil.
func (c *threads) close() {
	if c == nil {
		return
	}
	for _, b := range c.begin {
		close(b)
	}
	c.wg.Wait()
}

// In a turn that counts, each goroutine had its processor for ownShare of its time,
// and all ran at the same time for commonShare of the whole.
const (
	ownShare    = 0.97
	commonShare = 0.8
)

// parallel returns the mean time of the spans, and whether the turn counts.
func parallel(spans []span) (took time.Duration, ok bool) {
	ok = true
	first, last := spans[0], spans[0] // to begin and end first, and last
	for _, s := range spans {
		d := s.to.Sub(s.from)
		took += d / time.Duration(len(spans))
		ok = ok && (s.ran == 0 || float64(s.ran) >= ownShare*float64(d))
		if s.from.Before(first.from) {
			first.from = s.from
		}
		if s.to.Before(first.to) {
			first.to = s.to
		}
		if s.from.After(last.from) {
			last.from = s.from
		}
		if s.to.After(last.to) {
			last.to = s.to
		}
	}
	common, whole := first.to.Sub(last.from), last.to.Sub(first.from)
	return took, ok && float64(common) >= commonShare*float64(whole)
}
