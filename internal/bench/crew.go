package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A crew is goroutines that do turns together, each on a thread and, where the
// system lets it choose, a processor of its own. The clock of a turn begins when
// all are there: waking a goroutine on another processor takes as long as
// hundreds of accesses.
//
// On a busy machine a turn often is no turn of all at the same time: one had to
// wait for its processor, or came when the other was done. Such turns say nothing
// of what two processors can do. Their clock tells.
type crew struct {
	begin []chan func(worker int)
	done  chan struct{}
	wg    sync.WaitGroup
	here  atomic.Int32
	all   int32
	spans []stint
	took  time.Duration
	ok    bool
}

// A stint is one member's part of a turn.
type stint struct {
	from, to time.Time
	ran      int64 // nanoseconds of its thread on a processor; 0: unknown
}

func newCrew(members int) *crew {
	c := &crew{begin: make([]chan func(int), members), done: make(chan struct{}), spans: make([]stint, members)}
	for i := range c.begin {
		c.begin[i] = make(chan func(int))
		c.wg.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			settle(i)
			for f := range c.begin[i] {
				c.stint(i, f)
				c.done <- struct{}{}
			}
		})
	}
	return c
}

func (c *crew) stint(i int, f func(int)) {
	c.here.Add(1)
	for n := 1; c.here.Load() < c.all; n++ {
		if n%10_000 == 0 {
			runtime.Gosched() // there may be fewer processors than members
		}
	}
	s := &c.spans[i]
	began := threadTime()
	s.from = time.Now()
	f(i)
	s.to = time.Now()
	s.ran = threadTime() - began
}

// turn has the first members call f, and clocks them.
func (c *crew) turn(members int, f func(worker int)) {
	c.here.Store(0)
	c.all = int32(members)
	for _, b := range c.begin[:members] {
		b <- f
	}
	for range members {
		<-c.done
	}
	c.took, c.ok = judge(c.spans[:members])
}

// clock is the time that the last turn took, and whether it counts.
func (c *crew) clock() (time.Duration, bool) { return c.took, c.ok }

// close ends the crew, if there is one.
func (c *crew) close() {
	if c == nil {
		return
	}
	for _, b := range c.begin {
		close(b)
	}
	c.wg.Wait()
}

// Of a turn that counts, each member had its processor nearly all the time, and
// most of the time was everybody's.
const (
	ownShare    = 0.97
	commonShare = 0.8
)

// judge returns how long members took, in the mean, and whether the turn counts.
func judge(spans []stint) (took time.Duration, ok bool) {
	ok = true
	first, last := spans[0], spans[0] // who came and went first, and last
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
