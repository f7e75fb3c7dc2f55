package tcp

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// This file is how a connection is read by turns. At first, who serves it waits
// at the socket, as ReadFrame does. When somebody wants to stand in, he goes to
// wait at a watch beside it for good. That can be covered: then what arrives
// wakes nobody but who stands in and waits at the socket himself, so that an
// answer wakes one goroutine, the one that wants it. A watch is uncovered when
// the turn is over; it then looks whether something came meanwhile.

func (c *conn) Serve(take func(frame []byte) bool) error {
	c.take = take
	err := transport.Each(c, take)
	if !passes(err) {
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
		if !c.reading.TryLock() {
			return false // who reads uncovers the watch afterwards
		}
		defer c.reading.Unlock()
		err = c.takeAll(w)
		return err != nil || c.over
	})
	switch {
	case c.ended.Load():
		c.reading.Lock()
		defer c.reading.Unlock()
		return c.takeAll(w) // what he found out who stood in
	case e != nil:
		return c.wrap("read from", e)
	}
	return err
}

// takeAll takes what is there.
func (c *conn) takeAll(w *watch) error {
	c.r.r = w
	for !c.over {
		frame, err := c.r.next(wire.MaxFrame)
		switch {
		case err == errNothing:
			return nil
		case err != nil:
			return c.wrap("read from", err)
		}
		c.over = !c.take(frame)
	}
	return nil
}

func (c *conn) StandIn(send func(), done <-chan struct{}, patience time.Duration) {
	w := c.watch.Load()
	if w == nil {
		c.wish()
	}
	if w == nil || c.ended.Load() || !c.reading.TryLock() {
		send()
		return
	}
	w.cover()
	err := c.stand(w, send, done, patience)
	if passes(err) {
		c.until.Store(0)
		err = c.takeAll(w)
	}
	ended := err != nil || c.over
	if ended {
		c.ended.Store(true)
	}
	c.reading.Unlock()
	w.uncover()
	if ended {
		w.wake()
	}
}

// stand is StandIn of who has the turn.
func (c *conn) stand(w *watch, send func(), done <-chan struct{}, patience time.Duration) error {
	c.r.r = c.stream
	c.patient(patience)
	if err := w.exchange(send, &c.r); err != nil {
		return err
	}
	for !c.over && (c.patient(patience) && len(done) == 0 || c.r.ready()) {
		frame, err := c.r.next(wire.MaxFrame)
		if err != nil {
			return err
		}
		c.over = !c.take(frame)
	}
	return nil
}

// wish has who serves go to the watch.
func (c *conn) wish() {
	if c.try != nil && !c.wished.Swap(true) {
		c.stream.SetReadDeadline(epoch)
	}
}

// patient has reads end in time. It reports whether there is any left. As most
// end long before, the time is set anew only now and then.
func (c *conn) patient(patience time.Duration) bool {
	now := time.Since(epoch)
	if until := c.until.Load(); until >= int64(now+patience) {
		return true
	}
	c.until.Store(int64(now + 2*patience))
	return c.stream.SetReadDeadline(epoch.Add(now+2*patience)) == nil
}

// epoch is when the clock of this package began.
var epoch = time.Now()

func (c *conn) Recall() {
	if c.watch.Load() != nil {
		c.until.Store(0)
		c.stream.SetReadDeadline(epoch)
	}
}
