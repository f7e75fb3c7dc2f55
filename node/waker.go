package node

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit/internal/preempt"
)

// A waker is how a goroutine that sleeps while there is nothing to do is told
// that there is. It waits for wake, and calls awake before it looks.
type waker struct {
	wake chan struct{}
	up   atomic.Bool // a token is in wake
}

// wakeUp has the goroutine look for work. It is cheap when it is awake already.
func (w *waker) wakeUp() {
	preempt.Point()
	if !w.up.Load() && w.up.CompareAndSwap(false, true) {
		preempt.Point()
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// awake has what comes from now on wake the goroutine again.
func (w *waker) awake() {
	preempt.Point()
	w.up.Store(false)
	preempt.Point()
}
