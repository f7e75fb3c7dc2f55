package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	usual "github.com/godwit-ps/godwit/internal/host"
)

// A coro is blocking code that runs in turn with all other: it has control from
// resume until it waits or ends.
type coro struct {
	name  string
	host  *host
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	waits [3]<-chan struct{} // parked: for one of these,
	pause uint64             // and for the end of this pause, if timed
	timed bool
	woken int // by which of the channels, -1 by the pause

	worked int64 // nanoseconds on the server's cores, until now
	owed   int64 // … of which have not passed yet
	within bool  // Measure
}

// stopped is the panic that unwinds a coroutine that will not go on.
type stopped struct{}

// panicked makes an error of a panic, which ends a simulation and not the
// process: with rules switched off, anything may happen.
func panicked(p any) error { return fmt.Errorf("sim: panic: %v\n%s", p, debug.Stack()) }

// spawn makes a coroutine of f at a host. It begins when its turn comes.
func (c *Cluster) spawn(h *host, name string, f func()) {
	co := &coro{name: name, host: h}
	co.next, co.stop = iter.Pull(func(yield func(struct{}) bool) {
		co.yield = yield
		defer func() {
			switch p := recover().(type) {
			case nil, stopped:
			default:
				c.fail(fmt.Errorf("%s: %w", co.name, panicked(p)))
			}
		}()
		f()
	})
	c.live[co] = true
	c.queue.push(event{at: c.now, kind: wakes, host: h.id, coro: co, pause: co.pause})
	co.timed = true
}

// resume gives a coroutine control.
func (c *Cluster) resume(co *coro, woken int) {
	co.woken, co.timed = woken, false
	co.pause++
	last := c.running
	c.running = co
	_, more := co.next()
	c.running = last
	if !more {
		delete(c.live, co)
	}
}

// park gives control back until one of the channels or the pause wakes the
// running coroutine, and says which. A pause below 0 never ends.
func (c *Cluster) park(h *host, pause time.Duration, chans [3]<-chan struct{}) int {
	return c.parkUntil(h, pause, false, chans)
}

// parkUntil is park with a pause that nothing goes on in, if it is idle.
func (c *Cluster) parkUntil(h *host, pause time.Duration, idle bool, chans [3]<-chan struct{}) int {
	co := c.running
	if co == nil || co.host != h {
		panic("sim: a node waits where no program of it runs")
	}
	if c.aborting {
		panic(stopped{})
	}
	co.waits = chans
	co.timed = pause >= 0
	if co.timed {
		c.queue.push(event{at: c.now + int64(pause), kind: wakes, host: h.id, coro: co, pause: co.pause, idle: idle})
	}
	h.parked = append(h.parked, co)
	if !co.yield(struct{}{}) {
		panic(stopped{})
	}
	return co.woken
}

// ready takes a token from a channel, if one of them has one or is closed.
func ready(chans *[3]<-chan struct{}) int {
	for i, ch := range chans {
		if ch == nil {
			continue
		}
		select {
		case <-ch:
			return i
		default:
		}
	}
	return -1
}

// settle lets a host's coroutines go on that something happened for, until all
// wait for something to come.
func (c *Cluster) settle(h *host) {
	for again := true; again && c.err == nil; {
		again = false
		var idle [3]<-chan struct{} // have nothing: most wait for the node's end and their context's, too
		for i := 0; i < len(h.parked) && c.err == nil; i++ {
			co := h.parked[i]
			if co.waits[1] == idle[1] && co.waits[2] == idle[2] {
				if ch := co.waits[0]; ch == nil || cap(ch) > 0 && len(ch) == 0 {
					continue
				}
			}
			woken := ready(&co.waits)
			if woken < 0 {
				idle = co.waits
				continue
			}
			h.parked = slices.Delete(h.parked, i, i+1)
			i--
			c.resume(co, woken)
			again = true
			clear(idle[:])
		}
	}
}

// wake ends a coroutine's pause, or begins it.
func (c *Cluster) wake(e *event) {
	co := e.coro
	if !co.timed || co.pause != e.pause {
		return // woken meanwhile
	}
	if i := slices.Index(co.host.parked, co); i >= 0 {
		co.host.parked = slices.Delete(co.host.parked, i, i+1)
	}
	c.resume(co, -1)
	c.settle(co.host)
}

// A world is the host.World of one host.
type world struct {
	*Cluster
	h *host
}

func (w world) Now() int64 { return w.now + 1 }
func (w world) Go(f func()) {
	w.h.running++
	w.spawn(w.h, fmt.Sprintf("node %d", w.h.id), w.h.counted(f))
}

// counted ends what Go began.
func (h *host) counted(f func()) func() {
	return func() {
		defer func() {
			if h.running--; h.running == 0 && h.joined != nil {
				close(h.joined)
				h.joined = nil
			}
		}()
		f()
	}
}

func (w world) Join() {
	if w.h.running > 0 {
		if w.h.joined == nil {
			w.h.joined = make(chan struct{})
		}
		w.Wait(w.h.joined, nil, nil)
	}
}

func (w world) Wait(a, b, c <-chan struct{}) int {
	chans := [3]<-chan struct{}{a, b, c}
	if i := ready(&chans); i >= 0 {
		return i
	}
	return w.park(w.h, -1, chans)
}

func (w world) Sleep(d time.Duration, a, b <-chan struct{}) int { return w.sleep(d, false, a, b) }
func (w world) Idle(d time.Duration, a, b <-chan struct{}) int  { return w.sleep(d, true, a, b) }

func (w world) sleep(d time.Duration, idle bool, a, b <-chan struct{}) int {
	chans := [3]<-chan struct{}{a, b}
	if i := ready(&chans); i >= 0 {
		return i
	}
	return w.parkUntil(w.h, max(d, 0), idle, chans)
}

// Help has f begin if a core is free beside the one that the caller has.
func (w world) Help(f func()) bool {
	if w.h.free(w.now) < 2 {
		return false
	}
	w.Go(f)
	return true
}

func (w world) Processors() int { return len(w.h.cores) }

func (w world) Crowded(int) bool { return false } // goroutines take turns by time that passes
func (w world) Yield()           {}

// Measure returns the time that the server spent on f.
func (w world) Measure(f func()) int64 {
	co := w.running
	before, within := co.worked, co.within
	co.within = true
	f()
	co.within = within
	w.pass()
	return co.worked - before
}

// Worked passes the time that keys take on a core of the server. Within Measure, it passes in turns where no core is free: who has a core keeps it for
// a while, and would else wait for one after every few keys.
func (w world) Worked(d usual.Duty, keys int) {
	cost := int64(keys) * w.cfg.keyOf(d)
	if cost == 0 {
		return
	}
	co := w.running
	w.h.worked[d] += cost
	co.worked += cost
	co.owed += cost
	if !co.within || co.owed >= min(turn, w.cfg.Compute.slice()) || w.h.free(w.now) > 0 {
		w.pass()
	}
}

// turn is for how long rounds and planner work before they take note of whether a core has become free for a helper.
const turn = int64(100 * time.Microsecond)

// pass passes the time that the running coroutine owes.
func (w world) pass() {
	cost := w.running.owed
	if cost == 0 {
		return
	}
	w.running.owed = 0
	if end := w.h.serve(w.now, cost); end > w.now {
		w.park(w.h, time.Duration(end-w.now), [3]<-chan struct{}{})
	}
}
