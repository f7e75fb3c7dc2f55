package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Collector writes the records of other nodes to the folder of the run, at the node that leads. One goroutine writes; for it, a few
// messages wait, and who asks beyond is to ask again.
type Collector struct {
	dir    string
	header record.Header // of the node that leads
	queue  chan message
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	nodes  map[int]*collected
}

// collectedQueue is how many messages wait to be written.
const collectedQueue = 32

// closeTimeout is how long the end waits for the disk.
const closeTimeout = 5 * time.Second

// A collected node sends its record.
type collected struct {
	state byte   // wait: its first message waits to be written; done: its record is written; over, bad: it is not
	err   error  // of bad
	total uint64 // of how many events its trace tells; 0: it has not said so

	// of the goroutine that writes
	samples *record.Writer
	file    *os.File // a segment of the trace; nil: none, or what comes of it is dropped
	segment int
	size    int64  // of what came of the segment
	came    uint64 // events of which the folder tells
	dropped uint64 // … and those that the disk did not take
	failed  error  // the last that writing met
}

// NewCollector begins to collect the records of other nodes. dir is the folder of the run, h what the record of this node says.
func NewCollector(dir string, h record.Header) *Collector {
	c := &Collector{dir: dir, header: h, queue: make(chan message, collectedQueue), stop: make(chan struct{}), done: make(chan struct{}), nodes: map[int]*collected{}}
	go c.run()
	return c
}

// Answer answers a question of another node. It does not wait.
func (c *Collector) Answer(from int, q []byte) []byte {
	m, err := parse(q)
	if err != nil {
		return append([]byte{bad}, err.Error()...)
	}
	m.from = from
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[from]
	switch {
	case c.closed:
		return []byte{over}
	case m.kind == leaves:
		if n != nil {
			n.total = m.total
		}
		return []byte{done}
	case n == nil && m.kind != comes:
		return append([]byte{bad}, "recording: a record without a beginning"...)
	case n == nil:
		answer := c.put(m)
		if answer == done {
			c.nodes[from] = &collected{}
		}
		return []byte{wait}
	case n.state == bad:
		return append([]byte{bad}, n.err.Error()...)
	case n.state != done || m.kind == comes:
		return []byte{n.state}
	}
	return []byte{c.put(m)}
}

// put leaves a message to who writes, if there is room.
func (c *Collector) put(m message) byte {
	if len(c.queue) == cap(c.queue) {
		return wait
	}
	m.text, m.piece.Data = slices.Clone(m.text), slices.Clone(m.piece.Data)
	c.queue <- m // nobody else puts: mu is held
	return done
}

// run writes until the collector is closed, and then what waits.
func (c *Collector) run() {
	defer close(c.done)
	for {
		select {
		case m := <-c.queue:
			c.write(&m)
			continue
		default:
		}
		select {
		case m := <-c.queue:
			c.write(&m)
		case <-c.stop:
			if len(c.queue) == 0 {
				return
			}
		}
	}
}

// write writes a message.
func (c *Collector) write(m *message) {
	c.mu.Lock()
	n := c.nodes[m.from]
	c.mu.Unlock()
	if n.state == bad { // only this goroutine changes it
		return
	}
	state, err := done, error(nil)
	switch m.kind {
	case comes:
		state, err = c.begin(n, m)
	case sampled:
		var s record.Sample
		if err = json.Unmarshal(m.text, &s); err == nil {
			n.samples.Add(s)
		}
	case traced:
		err = c.trace(n, m)
	}
	if err != nil {
		state, err = bad, fmt.Errorf("recording: what node %d sends: %w", m.from, err)
	}
	c.mu.Lock()
	n.state, n.err = state, err
	c.mu.Unlock()
}

// begin makes the folder of a node, unless the node made it: then both see it.
func (c *Collector) begin(n *collected, m *message) (state byte, err error) {
	var h record.Header
	if err := json.Unmarshal(m.text, &h); err != nil {
		return bad, err
	}
	if h.Run != c.header.Run || int(h.Node) != m.from || h.Nodes != c.header.Nodes || m.from >= h.Nodes || h.Workers < 0 {
		return bad, fmt.Errorf("it is the record of node %d of %d of run %q, want node %d of %d of run %q", h.Node, h.Nodes, h.Run, m.from, c.header.Nodes, c.header.Run)
	}
	if err := os.Mkdir(trace.NodeDir(c.dir, h.Node), 0o777); errors.Is(err, fs.ErrExist) {
		return over, nil
	} else if err != nil {
		return bad, err
	}
	n.samples, err = record.Create(record.Config{Dir: c.dir, Header: h})
	return done, err
}

// trace writes a piece of the trace. An error says that it is none; what the disk does not take is dropped and counted, with what follows of the segment.
func (c *Collector) trace(n *collected, m *message) error {
	p := &m.piece
	h, records, err := p.Open()
	if err != nil {
		return err
	}
	if p.At == 0 {
		if p.Segment != n.segment+1 || h.Segment != p.Segment || h.Run != c.header.Run || int(h.Node) != m.from || h.Nodes != c.header.Nodes {
			return fmt.Errorf("it is segment %d of node %d of %d of run %q, want segment %d of node %d of %d of run %q", h.Segment, h.Node, h.Nodes, h.Run, n.segment+1, m.from, c.header.Nodes, c.header.Run)
		}
		if n.file != nil {
			n.failed = errors.Join(n.failed, n.file.Close())
		}
		n.segment, n.size = p.Segment, 0
		if n.file, err = os.OpenFile(filepath.Join(trace.NodeDir(c.dir, h.Node), trace.SegmentName(p.Segment)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			n.file, n.failed = nil, err
		}
	}
	if p.Segment != n.segment || p.At != n.size || len(records)%trace.RecordLen != 0 {
		return fmt.Errorf("%d bytes of segment %d from byte %d, want whole records of segment %d from byte %d", len(p.Data), p.Segment, p.At, n.segment, n.size)
	}
	n.size += int64(len(p.Data))
	if n.file != nil {
		_, err := n.file.Write(p.Data)
		if err == nil {
			n.came += trace.Count(records)
			return nil
		}
		n.failed = errors.Join(err, n.file.Close())
		n.file = nil
	}
	n.dropped += trace.Count(records)
	return nil
}

// Close writes what came, for 5 s at the most, and ends the collector. It says what the folder lacks of other nodes. It may be called again.
func (c *Collector) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	close(c.stop)
	select {
	case <-c.done:
	case <-time.After(closeTimeout):
		return fmt.Errorf("recording: the disk of %s has not taken what other nodes sent for %v", c.dir, closeTimeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for i := range c.header.Nodes {
		if n := c.nodes[i]; n != nil && n.state != over {
			errs = append(errs, n.err, n.lacks(i), n.close(i))
		}
	}
	return errors.Join(errs...)
}

// lacks says how many events the folder lacks of which it does not tell.
func (n *collected) lacks(id int) error {
	lost := n.dropped
	if n.total > n.came {
		lost = n.total - n.came
	}
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("trace: %d events of node %d are missing: this node, its disk or the network took less than there were", lost, id)
}

// close closes the files of a node.
func (n *collected) close(id int) error {
	err := n.failed
	if n.file != nil {
		err = errors.Join(err, n.file.Close())
	}
	if n.samples != nil {
		err = errors.Join(err, n.samples.Close())
	}
	if err != nil {
		return fmt.Errorf("recording: what node %d sent: %w", id, err)
	}
	return nil
}
