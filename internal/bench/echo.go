package bench

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
)

// An echo is a connection to a peer that reads messages of one length and answers
// each with one of another: the least that calls of as many bytes can cost. It is
// a plain TCP connection, without frames, keys or a table.
type echo struct {
	conn    net.Conn
	ask     []byte
	answer  []byte
	answers chan error // pipelined: one for each answer that has arrived
}

// serveEcho serves the connections of a listener until it is closed.
func serveEcho(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serveEchoes(c)
	}
}

// serveEchoes answers until the connection ends. A buffered answer leaves when no
// further message has arrived.
func serveEchoes(c net.Conn) {
	defer c.Close()
	var lengths [2]uint32
	if binary.Read(c, binary.LittleEndian, &lengths) != nil {
		return
	}
	in, out := bufio.NewReaderSize(c, 1<<16), bufio.NewWriterSize(c, 1<<16)
	ask, answer := make([]byte, lengths[0]), make([]byte, lengths[1])
	for {
		if _, err := io.ReadFull(in, ask); err != nil {
			return
		}
		if _, err := out.Write(answer); err != nil {
			return
		}
		if in.Buffered() < len(ask) && out.Flush() != nil {
			return
		}
	}
}

// dialEcho connects to an echo. With pipelined, a goroutine reads the answers until
// the connection is closed.
func dialEcho(addr string, ask, answer int, pipelined bool) (*echo, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	e := &echo{conn: c, ask: make([]byte, ask), answer: make([]byte, answer)}
	if err := binary.Write(c, binary.LittleEndian, [2]uint32{uint32(ask), uint32(answer)}); err != nil {
		c.Close()
		return nil, err
	}
	if pipelined {
		e.answers = make(chan error, depthMost)
		go e.read()
	}
	return e, nil
}

func (e *echo) read() {
	in := bufio.NewReaderSize(e.conn, 1<<16)
	for {
		_, err := io.ReadFull(in, e.answer)
		e.answers <- err
		if err != nil {
			return
		}
	}
}

// call is one message and its answer.
func (e *echo) call() error {
	if _, err := e.conn.Write(e.ask); err != nil {
		return err
	}
	_, err := io.ReadFull(e.conn, e.answer)
	return err
}

// begin sends a message, and wait waits for the oldest answer that is due.
func (e *echo) begin() error {
	_, err := e.conn.Write(e.ask)
	return err
}

func (e *echo) wait() error { return <-e.answers }
