package tcp

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// This file lets the goroutine that waits for an answer read the connection itself
// (transport.InlineReader). At first, the goroutine in Serve waits at the socket, as
// ReadFrame does. At the first ReadInline it moves to a watch for good: an epoll of
// its own. While somebody reads inline, the watch is masked, so that what arrives
// wakes only the inline reader, which waits at the socket. Afterwards the watch is
// rearmed, and reports what arrived meanwhile. Who polls reads so briefly that the watch is not
// masked: it is rearmed only if the goroutine in Serve was woken meanwhile, and turned away.

func (c *conn) Serve(take func(frame []byte) bool) error {
	c.take = take
	err := transport.Each(c, take)
	if !temporary(err) {
		return err
	}
	c.stream.SetReadDeadline(time.Time{})
	w := newWatch(c.stream)
	if w == nil {
		return transport.Each(c, take)
	}
	c.watch.Store(w)
	defer w.close()
	if c.closed.Load() { // perhaps before it could be seen there
		return c.wrap("read from", godwit.ErrClosed)
	}
	e := w.each(func() bool {
		if !c.tryServe() {
			return false
		}
		defer c.reading.Unlock()
		err = c.takeAll(w)
		return err != nil || c.over
	})
	switch {
	case c.ended.Load():
		c.reading.Lock()
		defer c.reading.Unlock()
		return c.takeAll(w) // the error that the inline reader met
	case e != nil:
		return c.wrap("read from", e)
	}
	return err
}

// tryServe locks reading, unless an inline reader has it, who then rearms the watch afterwards:
// one that polls does so if it finds passed set.
func (c *conn) tryServe() bool {
	if c.reading.TryLock() {
		return true
	}
	c.passed.Store(true)
	return c.reading.TryLock() // it may have looked before
}

// takeAll handles all frames that have arrived.
func (c *conn) takeAll(w *watch) error {
	c.r.r = w
	for !c.over {
		frame, err := c.r.next(wire.MaxFrame)
		switch {
		case err == errWouldBlock:
			return nil
		case err != nil:
			return c.wrap("read from", err)
		}
		c.over = !c.take(frame)
	}
	return nil
}

func (c *conn) ReadInline(send func(), done <-chan struct{}, timeout time.Duration) {
	w := c.watch.Load()
	if w == nil {
		c.wantInline()
	}
	if w == nil || c.ended.Load() || !c.reading.TryLock() {
		send()
		return
	}
	w.mask()
	err := c.readInline(w, send, done, timeout)
	if temporary(err) {
		c.deadline.Store(0)
		err = c.takeAll(w)
	}
	c.stopReading(err)
	w.rearm()
	if c.ended.Load() {
		w.wake()
	}
}

// stopReading lets others read after an inline reader, which met an error or none.
func (c *conn) stopReading(err error) {
	if err != nil || c.over {
		c.ended.Store(true)
	}
	c.reading.Unlock()
}

func (c *conn) Poll() {
	w := c.watch.Load()
	if w == nil {
		c.wantInline()
		return
	}
	if c.ended.Load() || !c.reading.TryLock() {
		return
	}
	w.share()
	c.stopPolling(w, c.takeAll(w))
}

// stopPolling lets others read after one who polled, and has the watch report what arrived while
// the goroutine in Serve was turned away.
func (c *conn) stopPolling(w *watch, err error) {
	c.stopReading(err)
	if c.passed.Load() && c.passed.Swap(false) {
		w.rearm()
	}
	if c.ended.Load() {
		w.wake()
	}
}

// readInline is ReadInline of the goroutine that holds reading.
func (c *conn) readInline(w *watch, send func(), done <-chan struct{}, timeout time.Duration) error {
	c.r.r = c.source
	c.extendDeadline(timeout)
	if err := w.exchange(send, &c.r); err != nil {
		return err
	}
	for !c.over && (c.extendDeadline(timeout) && len(done) == 0 || c.r.ready()) {
		frame, err := c.r.next(wire.MaxFrame)
		if err != nil {
			return err
		}
		c.over = !c.take(frame)
	}
	return nil
}

// wantInline has the goroutine in Serve move to the watch.
func (c *conn) wantInline() {
	if c.try != nil && !c.inlineWanted.Swap(true) {
		c.stream.SetReadDeadline(epoch)
	}
}

// extendDeadline sets the read deadline to at least the timeout from now, and reports
// whether it could. As most reads end long before, it is set only now and then.
func (c *conn) extendDeadline(timeout time.Duration) bool {
	now := time.Since(epoch)
	if until := c.deadline.Load(); until >= int64(now+timeout) {
		return true
	}
	c.deadline.Store(int64(now + 2*timeout))
	return c.stream.SetReadDeadline(epoch.Add(now+2*timeout)) == nil
}

// epoch is the zero of this package's clock.
var epoch = time.Now()

func (c *conn) Interrupt() {
	if c.watch.Load() != nil {
		c.deadline.Store(0)
		c.stream.SetReadDeadline(epoch)
	}
}
