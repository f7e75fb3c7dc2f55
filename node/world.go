package node

import (
	"runtime"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// A World is where a node gets time, goroutines and waiting from: everything
// that a simulation must rule to replay a run. Nothing else in this package
// reads a clock, starts a goroutine or waits. In the real one, time passes by
// itself and goroutines run in parallel.
type World interface {
	// Now returns nanoseconds since some moment, at least 1.
	Now() int64
	// Go runs f beside what runs already. Join returns when all of these have
	// returned. What Go is given after Join was called may not run: the node is at
	// its end.
	Go(f func())
	Join()
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
	// nanoseconds, that f took.
	Measure(f func()) int64
	// Worked is told that the caller has handled so many keys. In a world where
	// that takes no time by itself, it passes now.
	Worked(keys int)
}

// A Virtual makes a node part of a simulation: it has no connections. Flush is
// told that frames of node n for a peer wait (also during Start), takes them
// from Frame and hands them to the peer's Handle, in order and one after the
// other.
type Virtual struct {
	World World
	Flush func(n *Node, to godwit.NodeID)
	// Forgets, if set, is asked before each frame whether the node forgets the
	// lists of keys that its sender refers to. It asks for them then.
	Forgets func() bool
	// Barriers is how many barriers the workers count as behind them when the node
	// starts, the same at all nodes: bounds count them modulo a power of two.
	Barriers uint64
	// Limits bounds the node's queues; zero: as of a real node.
	Limits Limits
	// Broken switches rules of the protocol off, to see that checks notice.
	Broken      protocol.Broken
	BrokenBound Broken
}

// real is the world outside.
type real struct {
	start   time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	over bool // nothing begins any more
}

func (r *real) Now() int64 { return int64(time.Since(r.start)) + 1 }
func (r *real) Worked(int) {}

func (r *real) Go(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.running.Go(f)
	}
}

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

// Frame takes the oldest frame for a peer out of the queue of a virtual node,
// into the memory of buf. It is empty if there is none.
func (n *Node) Frame(to godwit.NodeID, buf []byte) []byte {
	return n.peers[to].take(buf)
}

// Handle hands a frame of a peer to a virtual node, and returns how many
// records it had. If the next frame of the peer is there already, what follows
// from this one may wait for it, as at a real node. An error ends the run.
func (n *Node) Handle(from godwit.NodeID, frame []byte, more bool) (records int, err error) {
	in := n.in[from]
	if f := n.cfg.Virtual.Forgets; f != nil && f() {
		in.known.Forget()
	}
	before := in.count
	err = n.frame(in, frame)
	if !more {
		in.out.flush()
	}
	if err != nil {
		n.broke(from, err)
	}
	return in.count - before, err
}
