package host

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Bell is how a goroutine that sleeps while there is nothing to do is told that
// there is. It waits for Rung, and calls Awake before it looks. Any goroutine may
// ring.
type Bell struct {
	rung    chan struct{}
	up      atomic.Bool // a token is in rung
	hurried chan struct{}
}

// NewBell returns a bell that nobody has rung.
func NewBell() *Bell {
	return &Bell{rung: make(chan struct{}, 1), hurried: make(chan struct{}, 1)}
}

// Ring has the goroutine look for work. It is cheap when it is awake already.
func (b *Bell) Ring() {
	preempt.Point()
	if !b.up.Load() && b.up.CompareAndSwap(false, true) {
		preempt.Point()
		select {
		case b.rung <- struct{}{}:
		default:
		}
	}
}

// Awake has what comes from now on wake the goroutine again.
func (b *Bell) Awake() {
	preempt.Point()
	b.up.Store(false)
	preempt.Point()
}

// Rung holds a token when somebody rang.
func (b *Bell) Rung() <-chan struct{} { return b.rung }

// Hurry ends the pause that the goroutine makes, or the next one.
func (b *Bell) Hurry() {
	select {
	case b.hurried <- struct{}{}:
	default:
	}
}

// Hurried holds a token when somebody wants no pause.
func (b *Bell) Hurried() <-chan struct{} { return b.hurried }
