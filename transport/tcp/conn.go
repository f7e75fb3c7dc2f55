package tcp

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// conn is a connection, plain or TLS. The reading goroutine owns r, the writing
// one try, tried and pace.
type conn struct {
	stream net.Conn
	source io.Reader // reads the stream
	r      frameReader
	try    *trier          // nil: nothing can be written without the risk of a wait
	tried  int             // bytes of the next frame that are sent already
	pace   pace            // what Pace asks the system by
	peer   transport.Hello // set before the connection is handed out
	closed atomic.Bool

	// Of Serve and ReadInline.
	take         func([]byte) bool     // set before watch
	inlineWanted atomic.Bool           // somebody wants to read inline
	watch        atomic.Pointer[watch] // nil: nobody can, yet
	reading      sync.Mutex            // held by whoever reads, once there is a watch
	passed       atomic.Bool           // the goroutine in Serve was woken and found somebody reading inline
	over         bool                  // take returned false; under reading
	ended        atomic.Bool           // an inline reader found out that no frame will come any more
	deadline     atomic.Int64          // of inline reads, in nanoseconds of this package's clock; 0: not set
}

var _ transport.InlineReader = (*conn)(nil)

func newConn(stream net.Conn) *conn {
	source := newSource(stream)
	return &conn{stream: stream, source: source, r: newFrameReader(source, wire.MaxHello), try: newTrier(stream)}
}

func (c *conn) WriteFrame(frame []byte) error {
	if err := wire.CheckLen(frame); err != nil {
		return err
	}
	rest := frame[c.tried:]
	c.tried = 0
	var err error
	if c.try != nil {
		err = c.try.writeAll(rest)
	} else {
		_, err = c.stream.Write(rest)
	}
	if err != nil {
		return c.wrap("write to", err)
	}
	return nil
}

func (c *conn) TryFrame(frame []byte) (bool, error) {
	if err := wire.CheckLen(frame); err != nil {
		return false, err
	}
	if c.try == nil {
		return false, nil
	}
	n, err := c.try.write(frame)
	switch {
	case err != nil:
		return false, c.wrap("write to", err)
	case n < len(frame):
		c.tried = n
		return false, nil
	}
	return true, nil
}

func (c *conn) ReadFrame() ([]byte, error) {
	frame, err := c.r.next(wire.MaxFrame)
	if err != nil {
		return nil, c.wrap("read from", err)
	}
	return frame, nil
}

// Arrived implements transport.Meter.
func (c *conn) Arrived() uint64 { return c.r.arrived.Load() }

func (c *conn) Ready() bool { return c.r.ready() }

// wrap says whose connection failed. The end of an orderly one stays io.EOF.
func (c *conn) wrap(what string, err error) error {
	switch {
	case c.closed.Load():
		err = godwit.ErrClosed
	case err == io.EOF:
		return err
	}
	return fmt.Errorf("tcp: %s node %d at %v: %w", what, c.peer.From, c.stream.RemoteAddr(), err)
}

func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	err := c.stream.Close()
	if w := c.watch.Load(); w != nil {
		w.close()
	}
	return err
}

func (c *conn) Peer() transport.Hello { return c.peer }
