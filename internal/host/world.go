package host

import (
	"runtime"
	"sync"
	"time"
)

// A World is where a node gets time, goroutines and waiting from: everything
// that a simulation must rule to replay a run. No room of a node reads a clock,
// starts a goroutine or waits but by its world, except who waits for a latch, and who
// connects real nodes. In the real world, time passes by itself and goroutines run in
// parallel.
type World interface {
	// Now returns nanoseconds since some moment, at least 1.
	Now() int64
	// Go runs f beside what runs already. Join returns when all of these have
	// returned. What Go is given after Join was called may not run: the node is at
	// its end.
	Go(f func())
	Join()
	// Help is Go of f if a processor is free for it, as far as the world knows. It reports whether f runs.
	Help(f func()) bool
	// Processors returns how many goroutines run at a time.
	Processors() int
	// Wait returns when a channel has a token, which it takes, or is closed: 0,
	// 1 or 2 for a, b or c. A nil channel never is. One with room for tokens must
	// not be closed.
	Wait(a, b, c <-chan struct{}) int
	// Sleep is Wait for d at the most; it returns -1 when that has passed.
	Sleep(d time.Duration, a, b <-chan struct{}) int
	// Idle is Sleep of who only looks whether the other nodes live. In a world that
	// ends when nothing goes on, that is nothing.
	Idle(d time.Duration, a, b <-chan struct{}) int
	// Measure calls f, on one thread, and returns the processor time, in
	// nanoseconds, that f took. What f tells Worked has passed then.
	Measure(f func()) int64
	// Crowded reports whether so many goroutines that never wait leave no processor to others.
	Crowded(busy int) bool
	// Yield lets goroutines run that are ready.
	Yield()
	// Worked is told that the caller has handled so many keys of a duty. In a world where
	// that takes no time by itself, it passes now, or, where no processor is free for it, at the end of Measure.
	Worked(d Duty, keys int)
}

// A Duty is for what a node works beside its workers.
type Duty int

const (
	Rounds   Duty = iota // sync rounds
	Planning             // acting on intents
)

// real is the world outside.
type real struct {
	start   time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	over bool // nothing begins any more
}

// Real returns the world outside, whose time begins now.
func Real() World { return &real{start: time.Now()} }

func (r *real) Now() int64       { return int64(time.Since(r.start)) + 1 }
func (r *real) Worked(Duty, int) {}
func (r *real) Yield()           { runtime.Gosched() }

func (r *real) Crowded(busy int) bool { return busy >= r.Processors() }

func (r *real) Go(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.running.Go(f)
	}
}

// Help leaves it to the scheduler of Go, which has a goroutine begin at once where a processor is free.
func (r *real) Help(f func()) bool {
	r.Go(f)
	return true
}

func (r *real) Processors() int { return runtime.GOMAXPROCS(0) }

func (r *real) Join() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.running.Wait()
}

func (r *real) Measure(f func()) int64 {
	// Only for as long as it is measured: to wake a goroutine that has a thread
	// of its own takes longer.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := threadTime()
	f()
	return threadTime() - begun
}

func (r *real) Wait(a, b, c <-chan struct{}) int {
	select {
	case <-a:
		return 0
	case <-b:
		return 1
	case <-c:
		return 2
	}
}

func (r *real) Idle(d time.Duration, a, b <-chan struct{}) int { return r.Sleep(d, a, b) }

func (r *real) Sleep(d time.Duration, a, b <-chan struct{}) int {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return -1
	case <-a:
		return 0
	case <-b:
		return 1
	}
}
