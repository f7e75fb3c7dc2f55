// Package recording writes what a node does to the folder of its run, from where package
// telemetry/record and package telemetry/trace read it: a sample a second, and the life of keys.
//
// Where the node that leads the run does not see that folder, a [Sender] has the same written there by a [Collector], over the connections
// between nodes: the node asks, and the leader answers at once, as questions between nodes are ([node.Node.Serve]).
package recording

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Config says what is written of which node.
type Config struct {
	Dir    string        // of the run; all nodes write to it, each to a folder within it that must be empty
	Header record.Header // of the node; Host, PID and Start are filled in
	Model  *godwit.Model // whose keys are traced,
	Keys   string        // … as trace.ParseKeys reads it
	// Send has the record sent to the node that leads, by Node.Send.
	Send bool
	// Temporary says that segments of the trace may be removed when they were sent.
	Temporary bool
	// Warn, if it is not nil, is told once, while the node runs, when the record begins to lack something. Stop, Sent and Close say at the end what it lacks.
	Warn func(error)
}

// A Node is the record of a node. Calls are made one after the other. A nil Node writes nothing.
type Node struct {
	Dir    string        // of the run
	Tables []trace.Table // of the model

	header  record.Header
	begin   time.Time // that of the header, by a clock that nobody sets
	trace   *trace.Writer
	samples *record.Writer // nil until the node has started
	of      *node.Node
	items   func() int64
	census  trace.Census // the last that was taken,
	taken   int          // … and how many samples were since
	ending  atomic.Bool  // the next sample is the last
	ended   bool
	sender  *Sender // nil: nothing is sent
	warn    func(error)
	told    bool // it was warned; of the goroutine that takes samples
}

// censusEvery is for how many samples a census stands: it looks at all traced keys. In the first ones these are few, and each census has many new ones.
const censusEvery = 5

// counts reports whether a census is taken with a sample, the first of which is 0.
func counts(sample int) bool { return sample < censusEvery || sample%censusEvery == 0 }

// Begin begins the record of a node that is about to start.
func Begin(c Config) (*Node, error) {
	keys, err := trace.ParseKeys(c.Keys, c.Model)
	if err != nil {
		return nil, err
	}
	r := &Node{Dir: c.Dir, Tables: trace.TablesOf(c.Model), header: c.Header, begin: time.Now(), warn: c.Warn}
	h := &r.header
	h.PID, h.Start = os.Getpid(), r.begin.UnixNano()
	if h.Host, err = os.Hostname(); err != nil {
		h.Host = "unknown host" // it only serves to be read
	}
	r.trace, err = trace.Create(trace.Config{Dir: r.Dir, Keys: keys, Header: trace.Header{
		Run: h.Run, Policy: h.Policy, Node: h.Node, Nodes: h.Nodes, Start: h.Start, Tables: r.Tables}})
	if err != nil {
		return nil, err
	}
	if c.Send {
		r.sender = newSender(r.Dir, r.header, c.Temporary)
	}
	return r, nil
}

// Header returns what the record says of the node.
func (r *Node) Header() record.Header { return r.header }

// Send begins to send the record, of a node that takes samples, to the one that leads, if that was wanted when the record began.
func (r *Node) Send(ask Ask) {
	if r != nil && r.sender != nil {
		r.sender.start(ask, r.of.Done())
	}
}

// Sent ends the sending, after Stop, while the node still has its connections. It sends what is left, if rest is set, and says what was not sent.
// It takes 4 s at the most, and 5 s more if the disk does not answer.
func (r *Node) Sent(rest bool) error {
	if r == nil || r.sender == nil {
		return nil
	}
	r.trace.Flush()
	return r.sender.end(rest)
}

// Trace returns what the node's keys are traced by.
func (r *Node) Trace() *trace.Writer {
	if r == nil {
		return nil
	}
	return r.trace
}

// Sample begins to take samples of the node, which has started. items tells how many examples it has trained; nil: they are its steps.
func (r *Node) Sample(n *node.Node, items func() int64) (err error) {
	if r == nil {
		return nil
	}
	r.of, r.items = n, items
	r.samples, err = record.Create(record.Config{Dir: r.Dir, Header: r.header, Take: r.take, Warn: r.warnOnce})
	return err
}

// age returns for how long there has been a record, in ns. It never becomes less, also when somebody sets the clock back.
func (r *Node) age() int64 { return int64(time.Since(r.begin)) }

// take says what the node did so far.
func (r *Node) take() record.Sample {
	s := record.Sample{Time: r.age(), Process: process(), Lost: r.trace.Dropped()}
	x := r.of.Snapshot()
	s.Fill(&x)
	s.Items = s.Steps
	if r.items != nil {
		s.Items = r.items()
	}
	fill(&s, r.of.Stats())
	ending := r.ending.Load()
	if ending {
		r.trace.Flush() // the census is of what is written
	}
	if counts(r.taken) || ending {
		r.census = r.trace.Census()
	}
	r.taken++
	for i, u := range r.census.Tables {
		s.Tables = append(s.Tables, record.Table{Name: r.Tables[i].Name, Use: u})
	}
	err := r.lacks()
	if err == nil && r.sender != nil {
		if n := r.sender.skipped.Load(); n > 0 {
			err = tooMany(n)
		}
	}
	if err != nil && !ending {
		r.warnOnce(err)
	}
	s.Hot, s.Half, s.Most = r.census.Hot, r.census.Half, r.census.Most
	if r.sender != nil {
		r.sender.sample(s)
	}
	return s
}

// warnOnce warns if nobody was warned yet.
func (r *Node) warnOnce(err error) {
	if !r.told && r.warn != nil {
		r.told = true
		r.warn(fmt.Errorf("what this node does is not recorded whole from here on: %w", err))
	}
}

// fill takes what stats have.
func fill(s *record.Sample, x node.Stats) {
	s.Accesses = record.Accesses{Local: x.Local, Replica: x.Replica, Ahead: x.Ahead, Queued: x.Queued, Remote: x.Remote, Late: x.Late}
	s.Calls, s.SlowCalls, s.Rounds, s.RoundTime = x.Calls, x.SlowCalls, x.Rounds, int64(x.RoundTime)
	s.Moves, s.Copies, s.Drops, s.Deltas, s.Refreshes, s.Learned = x.Moves, x.Copies, x.Drops, x.Deltas, x.Refreshes, x.Learned
	s.Owned, s.Replicas = x.Owned, x.Replicas
	s.SentBytes, s.Received, s.Frames = x.SentBytes, x.ReceivedBytes, x.Frames
}

// Stop takes the last sample, before the node ends.
func (r *Node) Stop() error {
	if r == nil || r.samples == nil {
		return nil
	}
	w := r.samples
	r.samples = nil
	r.ending.Store(true)
	return w.Close()
}

// there reports whether a folder is there still: files that were removed take what is written to them.
func there(dir string) bool {
	_, err := os.Stat(dir)
	return !errors.Is(err, os.ErrNotExist)
}

// Close ends the record, after the node. It says what was not written.
func (r *Node) Close() error {
	if r == nil || r.ended {
		return nil
	}
	r.ended = true
	if err := r.trace.Close(); err != nil {
		return err
	}
	return r.lacks()
}

// lacks says what the folder does not have by now of what the node did; nil: nothing that is known.
func (r *Node) lacks() error {
	if err := r.trace.Lacks(); err != nil {
		return err
	}
	if dir := trace.NodeDir(r.Dir, r.header.Node); !there(dir) {
		return fmt.Errorf("recording: %s was removed or renamed while this node wrote to it", dir)
	}
	return nil
}
