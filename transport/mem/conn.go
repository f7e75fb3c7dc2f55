package mem

import (
	"fmt"

	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/wire"
)

// conn is one end of a connection: two queues, shared with the other end the
// other way round.
type conn struct {
	in, out *queue
	peer    wire.Hello
}

var _ transport.Conn = (*conn)(nil)

func (c *conn) WriteFrame(frame []byte) error {
	if err := wire.CheckLen(frame); err != nil {
		return err
	}
	if err := c.out.put(frame); err != nil {
		return fmt.Errorf("mem: write to node %d: %w", c.peer.From, err)
	}
	return nil
}

func (c *conn) ReadFrame(buf []byte) ([]byte, error) { return c.in.take(buf) }

func (c *conn) Close() error {
	c.out.closeWriter()
	c.in.closeReader()
	return nil
}

func (c *conn) Peer() wire.Hello { return c.peer }
