package latch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Latch is the lock of a shard. Locks are held for the time of a few memory
// accesses, seldom of a sync round, and never while something is waited for.
//
// Reading does without the lock: note the Word, read, and see whether it is
// Unchanged. So workers that read the same rows write nothing that the others
// then have to fetch, be there as many as there may.
type Latch struct {
	word  atomic.Uint32 // odd: locked; each Lock and each Unlock adds one
	queue sync.Mutex    // those who found it locked; the first of them tries again
}

// Lock waits until nobody else has the lock.
func (l *Latch) Lock() {
	preempt.Point()
	if v := l.word.Load(); v&1 != 0 || !l.word.CompareAndSwap(v, v+1) {
		l.wait()
	}
	preempt.Hold()
}

// TryLock locks what nobody has locked, and reports whether it did.
func (l *Latch) TryLock() bool {
	v := l.word.Load()
	if v&1 != 0 || !l.word.CompareAndSwap(v, v+1) {
		return false
	}
	preempt.Hold()
	return true
}

// Unlock lets others have it. Only who has the lock writes the word.
func (l *Latch) Unlock() {
	release(&l.word, l.word.Load()+1)
	preempt.Release()
	preempt.Point()
}

// Tries of who waits first in the queue. It looks for longer than any push takes, and lets others run once, as
// the holder may be a goroutine without a processor. It goes on looking for some tens of microseconds, and then sleeps: the
// holder's thread has lost its processor to another process, for milliseconds. Who measures its processor
// time (host.World.Measure) is bound to its thread, so that each time that it lets others run takes two switches between threads.
const (
	looks = 64
	most  = 2000
)

func (l *Latch) wait() {
	l.queue.Lock()
	defer l.queue.Unlock()
	for i := 0; ; i++ {
		if v := l.word.Load(); v&1 == 0 && l.word.CompareAndSwap(v, v+1) {
			return
		}
		switch {
		case i == looks:
			runtime.Gosched()
		case i < most:
			hint.Wait()
		default:
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// Word returns what Unchanged compares with, and whether nobody has the lock.
func (l *Latch) Word() (uint32, bool) {
	preempt.Point()
	v := l.word.Load()
	preempt.Point()
	return v, v&1 == 0
}

// Unchanged reports whether nobody had the lock since Word.
func (l *Latch) Unchanged(v uint32) bool {
	preempt.Point()
	return l.word.Load() == v || preempt.Unverified
}
