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

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Collector writes the records of other nodes to the folder of the run, at the node that leads. One goroutine writes. A bounded queue of
// messages is in front of it. While the queue is full, nodes are told to send their messages again.
//
// What nodes send is checked: a node writes only to its own folder, and only the next bytes of its trace. A node that sends something else is
// refused from then on, and the others are not affected.
type Collector struct {
	dir    string
	header record.Header // of the node that leads
	tables []trace.Table // of the run's model
	queue  chan message
	stop   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	closed  bool
	sources map[int]*source // by node
}

// collectorQueue is how many messages the queue holds.
const collectorQueue = 32

// closeTimeout is how long Close waits for the disk.
const closeTimeout = 5 * time.Second

// A source is a node that sends its record.
type source struct {
	// answer is retry until the first message was written, accepted while the record is written, and else the answer to all that the node sends.
	answer byte
	err    error  // why the node is refused
	total  uint64 // how many events its trace has; 0: the node has not said so yet

	// The goroutine that writes uses what follows.
	samples *record.Writer
	header  trace.Header // of the segment
	file    *os.File     // of the segment; nil: none, or its bytes are dropped
	size    int64        // bytes of the segment that came
	written uint64       // events that the folder has, or counts as lost
	dropped uint64       // events that the disk did not take
	failed  error        // errors of the disk
}

// NewCollector begins to collect the records of other nodes. dir is the folder of the run, h the header of the leader's own record, and tables those
// of the run's model.
func NewCollector(dir string, h record.Header, tables []trace.Table) *Collector {
	c := &Collector{dir: dir, header: h, tables: tables, queue: make(chan message, collectorQueue), stop: make(chan struct{}), done: make(chan struct{}), sources: map[int]*source{}}
	go c.run()
	return c
}

// Answer answers a question of another node. It does not wait. Any goroutine may call it. A nil Collector wants nothing.
func (c *Collector) Answer(from int, q []byte) []byte {
	if c == nil {
		return []byte{unwanted}
	}
	m, err := parse(q)
	if err != nil {
		return append([]byte{refused}, err.Error()...)
	}
	m.from = from
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[from]
	switch {
	case c.closed:
		return []byte{unwanted}
	case m.kind == goodbye:
		if s != nil {
			s.total = m.total
		}
		return []byte{accepted}
	case s == nil && m.kind != hello:
		return append([]byte{refused}, "recording: the first message of a node must be hello"...)
	case s == nil:
		if c.put(m) == accepted {
			c.sources[from] = &source{}
		}
		return []byte{retry} // until it is known who writes the folder
	case s.answer == refused:
		return append([]byte{refused}, s.err.Error()...)
	case s.answer != accepted || m.kind == hello:
		return []byte{s.answer}
	}
	return []byte{c.put(m)}
}

// put puts a message into the queue, if there is room. It is called under the lock.
func (c *Collector) put(m message) (answer byte) {
	if len(c.queue) == cap(c.queue) {
		return retry
	}
	m.text, m.piece.Data = slices.Clone(m.text), slices.Clone(m.piece.Data)
	c.queue <- m // does not wait: who puts has the lock
	return accepted
}

// run writes messages until the collector is closed and the queue is empty.
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
	s := c.sources[m.from]
	c.mu.Unlock()
	if s.answer == refused { // no other goroutine changes it
		return
	}
	answer, err := accepted, error(nil)
	switch m.kind {
	case hello:
		answer, err = c.begin(s, m)
	case sample:
		var x record.Sample
		if err = json.Unmarshal(m.text, &x); err == nil {
			s.samples.Add(x)
		}
	case chunk:
		err = c.append(s, m)
	}
	if err != nil {
		answer, err = refused, fmt.Errorf("recording: node %d sends its record: %w", m.from, err)
	}
	c.mu.Lock()
	s.answer, s.err = answer, err
	c.mu.Unlock()
}

// begin makes the folder of a node. If the folder is there, the node made it and sees the leader's folder, so its record is unwanted.
func (c *Collector) begin(s *source, m *message) (answer byte, err error) {
	var h record.Header
	if err := json.Unmarshal(m.text, &h); err != nil {
		return refused, err
	}
	if h.Run != c.header.Run || int(h.Node) != m.from || h.Nodes != c.header.Nodes || m.from >= h.Nodes || h.Workers < 0 || h.Start < 0 || h.Start > trace.MaxStart {
		return refused, fmt.Errorf("the header is of node %d of %d of run %q with %d workers from %d on, want node %d of %d of run %q", h.Node, h.Nodes, h.Run, h.Workers, h.Start, m.from, c.header.Nodes, c.header.Run)
	}
	if err := os.Mkdir(trace.NodeDir(c.dir, h.Node), 0o777); errors.Is(err, fs.ErrExist) {
		return unwanted, nil
	} else if err != nil {
		return refused, err
	}
	s.samples, err = record.Create(record.Config{Dir: c.dir, Header: h})
	return accepted, err
}

// append appends a chunk to the trace of a node. It returns an error if the chunk is not valid. If the disk does not take the chunk, append drops and
// counts it, with all that follows of the segment.
func (c *Collector) append(s *source, m *message) error {
	p := &m.piece
	h, records, err := p.Open()
	if err != nil {
		return err
	}
	if p.At == 0 {
		if err := c.check(s, m, &h); err != nil {
			return err
		}
		if s.file != nil {
			s.failed = errors.Join(s.failed, s.file.Close())
		}
		s.header, s.size = h, 0
		if s.file, err = os.OpenFile(filepath.Join(trace.NodeDir(c.dir, h.Node), trace.SegmentName(p.Segment)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			s.file, s.failed = nil, errors.Join(s.failed, err)
		}
	}
	if p.Segment != s.header.Segment || p.At != s.size || len(records)%trace.RecordLen != 0 {
		return fmt.Errorf("the chunk has %d bytes at byte %d of segment %d, want whole records at byte %d of segment %d", len(p.Data), p.At, p.Segment, s.size, s.header.Segment)
	}
	if err := s.header.Check(records); err != nil {
		return err
	}
	s.size += int64(len(p.Data))
	if s.file != nil {
		_, err := s.file.Write(p.Data)
		if err == nil {
			s.written += trace.Count(records)
			return nil
		}
		s.failed = errors.Join(s.failed, err, s.file.Close())
		s.file = nil
	}
	s.dropped += trace.Count(records)
	return nil
}

// check returns an error if a header is not that of the next segment of a node.
func (c *Collector) check(s *source, m *message, h *trace.Header) error {
	next := s.header.Segment + 1
	if m.piece.Segment != next || h.Segment != next || h.Run != c.header.Run || int(h.Node) != m.from || h.Nodes != c.header.Nodes {
		return fmt.Errorf("the header is of segment %d of node %d of %d of run %q in segment %d, want segment %d of node %d of %d of run %q", h.Segment, h.Node, h.Nodes, h.Run, m.piece.Segment, next, m.from, c.header.Nodes, c.header.Run)
	}
	if _, err := h.Keys(); err != nil {
		return err
	}
	if !slices.Equal(h.Tables, c.tables) {
		return fmt.Errorf("the header of segment %d has tables %v, want %v", next, h.Tables, c.tables)
	}
	if next > 1 && (h.Start != s.header.Start || h.Base < s.header.Base || h.Traced != s.header.Traced) {
		return fmt.Errorf("segment %d begins %d µs after %d with keys %q, the one before it %d µs after %d with keys %q", next, h.Base, h.Start, h.Traced, s.header.Base, s.header.Start, s.header.Traced)
	}
	return nil
}

// Close writes the messages that were accepted, for 5 s at the most, and ends the collector. Its error says what the folder lacks of other nodes. It may be
// called again, and then does nothing.
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
		return fmt.Errorf("recording: the disk of %s did not take what other nodes sent within %v", c.dir, closeTimeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for i := range c.header.Nodes {
		if s := c.sources[i]; s != nil && s.answer != unwanted {
			errs = append(errs, s.err, s.missing(i), c.end(s, i))
		}
	}
	return errors.Join(errs...)
}

// missing returns an error if the folder neither has all events of a node nor counts them as lost.
func (s *source) missing(node int) error {
	n := s.dropped
	if s.total > s.written {
		n = s.total - s.written
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("trace: node %d had %d more events than this node, its disk or the network took", node, n)
}

// end closes the files of a node.
func (c *Collector) end(s *source, node int) error {
	err := s.failed
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	if s.samples != nil {
		err = errors.Join(err, s.samples.Close())
	}
	if dir := trace.NodeDir(c.dir, godwit.NodeID(node)); err == nil && s.samples != nil && !there(dir) {
		err = fmt.Errorf("%s was removed or renamed while it was written", dir)
	}
	if err != nil {
		return fmt.Errorf("recording: the record of node %d: %w", node, err)
	}
	return nil
}
