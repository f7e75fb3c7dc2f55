package host

import (
	"context"
	"sync"
)

// A Host is what a node lives in: its world, and its own life. Any goroutine may use
// it.
type Host struct {
	World

	stop chan struct{}      // closed by Halt: goroutines end,
	life context.Context    // … which ends then, and
	die  context.CancelFunc // … with it what they wait for elsewhere

	once sync.Once
	done chan struct{} // closed when the node failed or was closed
	err  error         // set before done is closed
}

// New returns the host of a node that begins to live.
func New(w World) *Host {
	h := &Host{World: w, stop: make(chan struct{}), done: make(chan struct{})}
	h.life, h.die = context.WithCancel(context.Background())
	return h
}

// Done is closed when the run is over for the node: it failed or was closed.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err is nil before Done, and says why after it.
func (h *Host) Err() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// Fail ends the run for the node. Only the first error counts.
func (h *Host) Fail(err error) {
	h.once.Do(func() {
		h.err = err
		close(h.done)
	})
}

// Halt ends the node's goroutines. It is called once.
func (h *Host) Halt() {
	close(h.stop)
	h.die()
}

// Stop is closed by Halt.
func (h *Host) Stop() <-chan struct{} { return h.stop }

// Life ends with Halt.
func (h *Host) Life() context.Context { return h.life }
