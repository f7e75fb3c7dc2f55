package mem

import (
	"fmt"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// conn is one end of a connection: two queues, shared with the other end the
// other way round.
type conn struct {
	in, out *queue
	peer    transport.Hello
}

var _ transport.Conn = (*conn)(nil)

func (c *conn) WriteFrame(frame []byte) error {
	if err := wire.CheckLen(frame); err != nil {
		return err
	}
	if _, err := c.out.put(frame, true); err != nil {
		return fmt.Errorf("mem: write to node %d: %w", c.peer.From, err)
	}
	return nil
}

func (c *conn) TryFrame(frame []byte) (bool, error) {
	if err := wire.CheckLen(frame); err != nil {
		return false, err
	}
	sent, err := c.out.put(frame, false)
	if err != nil {
		return false, fmt.Errorf("mem: write to node %d: %w", c.peer.From, err)
	}
	return sent, nil
}

func (c *conn) ReadFrame() ([]byte, error) { return c.in.take() }

func (c *conn) Ready() bool { return c.in.ready() }

func (c *conn) Close() error {
	c.out.closeWriter()
	c.in.closeReader()
	return nil
}

func (c *conn) Peer() transport.Hello { return c.peer }
