package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit"
)

// A Host is what a node lives in: its world, and its own life. Any goroutine may use
// it.
type Host struct {
	World

	stop chan struct{}      // closed by Halt: goroutines end,
	life context.Context    // … which ends then, and
	die  context.CancelFunc // … with it what they wait for elsewhere

	onPanic   func(error)   // tells the others of a panic; nil: nobody is told
	panicked  sync.Once     // … of the first
	recording func() string // writes down what the process did, and says where; nil: nothing is recorded

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

// Record has errors of waits that took too long say where is written what the process did meanwhile:
// write does that and returns the path, "" if there is none. It is called before the node begins.
func (h *Host) Record(write func() string) { h.recording = write }

// Late returns err of a wait under a context. If the deadline of that has passed, it says where is
// recorded what the process did meanwhile, if that is.
func (h *Host) Late(ctx context.Context, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return h.recorded(err)
}

// Lost is Late of a run that is over. Of other causes than that a node was lost, it says nothing more.
func (h *Host) Lost(err error) error {
	if !errors.Is(err, godwit.ErrPeerLost) {
		return err
	}
	return h.recorded(err)
}

func (h *Host) recorded(err error) error {
	if h.recording == nil || err == nil {
		return err
	}
	path := h.recording()
	if path == "" {
		return err
	}
	return fmt.Errorf("%w (for what this process did meanwhile: go tool trace %s)", err, path)
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
