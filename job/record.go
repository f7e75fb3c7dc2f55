package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/train/task"
)

// A recorder writes what a node does to the folder of its run: the life of keys, a sample a second, and,
// at the node that leads, the run's events. A nil recorder writes nothing.
type recorder struct {
	dir     string // of the run
	trace   *trace.Writer
	samples *record.Writer // nil until the node has started
	diary   *record.Diary  // nil at nodes that do not lead
	header  record.Header
	tables  []trace.Table
	census  trace.Census // the last that was taken,
	taken   int          // … and how many samples were since
	ending  atomic.Bool  // the next sample is the last
	ended   bool
}

// censusEvery is for how many samples a census stands: it looks at all traced keys.
const censusEvery = 5

// beginTrace begins the record of the node, if there is to be one.
func (p *part) beginTrace(m *godwit.Model) (err error) {
	if p.cfg.Trace == "" {
		return nil
	}
	keys, err := trace.ParseKeys(p.cfg.TraceKeys, m)
	if err != nil {
		return err
	}
	self, nodes, now := p.session.Self(), len(p.session.Members()), time.Now().UnixNano()
	r := &recorder{dir: filepath.Join(p.cfg.Trace, p.run), tables: trace.TablesOf(m)}
	r.header = record.Header{Run: p.run, Policy: p.spec.Policy, Node: self, Nodes: nodes, Workers: p.cfg.workers(p.spec), Host: hostname(), PID: os.Getpid(), Start: now}
	r.trace, err = trace.Create(trace.Config{Dir: r.dir, Keys: keys, Header: trace.Header{
		Run: p.run, Policy: p.spec.Policy, Node: self, Nodes: nodes, Start: now, Tables: r.tables}})
	if err != nil {
		return err
	}
	p.record = r
	if p.cfg.leads {
		if err := p.writeNames(r); err != nil {
			return err
		}
		r.diary, err = record.NewDiary(r.dir, p.run, p.spec.Policy)
	}
	return err
}

// writeNames writes what the rows of tables are called, where the task knows it.
func (p *part) writeNames(r *recorder) error {
	named, ok := p.task.(task.Named)
	if !ok {
		return nil
	}
	for i, t := range r.tables {
		if names := named.Names(t.Name); names != nil {
			if err := trace.WriteNames(r.dir, i, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginSamples begins to take samples of the node, which has started.
func (p *part) beginSamples() (err error) {
	if r := p.record; r != nil {
		r.samples, err = record.Create(record.Config{Dir: r.dir, Header: r.header, Take: p.sample})
	}
	return err
}

// sample says what the node did so far.
func (p *part) sample() record.Sample {
	r := p.record
	s := record.Sample{Time: time.Now().UnixNano() - r.header.Start, Items: p.items(p.seen.Load()), Process: process(), Lost: r.trace.Dropped()}
	x := p.node.Snapshot()
	s.Fill(&x)
	fill(&s, p.node.Stats())
	if r.taken%censusEvery == 0 || r.ending.Load() {
		r.census = r.trace.Census()
	}
	r.taken++
	for i, u := range r.census.Tables {
		s.Tables = append(s.Tables, record.Table{Name: r.tables[i].Name, Use: u})
	}
	s.Hot, s.Half, s.Most = r.census.Hot, r.census.Half, r.census.Most
	return s
}

// fill takes what stats have.
func fill(s *record.Sample, x node.Stats) {
	s.Accesses = record.Accesses{Local: x.Local, Replica: x.Replica, Ahead: x.Ahead, Queued: x.Queued, Remote: x.Remote, Late: x.Late}
	s.Calls, s.SlowCalls, s.Rounds, s.RoundTime = x.Calls, x.SlowCalls, x.Rounds, int64(x.RoundTime)
	s.Moves, s.Copies, s.Drops, s.Deltas, s.Refreshes, s.Learned = x.Moves, x.Copies, x.Drops, x.Deltas, x.Refreshes, x.Learned
	s.Owned, s.Replicas = x.Owned, x.Replicas
	s.SentBytes, s.Received, s.Frames = x.SentBytes, x.ReceivedBytes, x.Frames
}

// traceOf returns what the node's keys are traced by.
func (r *recorder) traceOf() *trace.Writer {
	if r == nil {
		return nil
	}
	return r.trace
}

// stop takes the last sample, before the node ends.
func (r *recorder) stop() error {
	if r == nil || r.samples == nil {
		return nil
	}
	w := r.samples
	r.samples = nil
	r.ending.Store(true)
	return w.Close()
}

// close ends the record, after the node. What was not written is told, and does not fail the run.
func (r *recorder) close() error {
	if r.ended {
		return nil
	}
	r.ended = true
	err := r.trace.Close()
	if n := r.trace.Dropped(); err == nil && n > 0 {
		err = fmt.Errorf("trace: %d events were not written: there were more than the disk takes", n)
	}
	return err
}

// note writes an event of the run.
func (r *recorder) note(e *Event, t task.Settings, epochs int) {
	if r == nil || r.diary == nil {
		return
	}
	x := record.Event{Time: e.Time, Seconds: e.Seconds, Warning: e.Warning, Stopping: e.Stopping}
	switch {
	case e.Start != nil:
		x.Start = &record.Start{Unit: e.Start.Unit, Data: e.Start.Data, Epochs: epochs, Spec: e.Start.Spec}
		x.Start.Task = t.Name()
		for _, n := range e.Start.Nodes {
			x.Start.Nodes = append(x.Start.Nodes, record.Member{ID: n.ID, Host: n.Host, PID: n.PID, Workers: n.Workers, Addr: n.Addr})
		}
	case e.Epoch != nil:
		x.Epoch = &record.Epoch{Epoch: e.Epoch.Epoch, Of: e.Epoch.Of, Loss: record.Figure(e.Epoch.Loss), Items: e.Epoch.Items, Seconds: e.Epoch.Seconds}
	case e.Evaluation != nil:
		x.Evaluation = &record.Evaluation{Epoch: e.Evaluation.Epoch, Metrics: noted(e.Evaluation.Metrics), LowerIsBetter: e.Evaluation.LowerIsBetter}
	case e.Checkpoint != nil && e.Checkpoint.Error != "":
		x.Warning = "checkpoint: " + e.Checkpoint.Error
	case e.Checkpoint != nil:
		x.Checkpoint = e.Checkpoint.Place
	case e.Result != nil:
		r := e.Result
		x.End = &record.End{Reason: string(r.End), Epochs: r.Epochs, Seconds: r.TrainSeconds, Metrics: noted(SplitMetrics(r.Test))}
		if r.Reason != "" {
			x.End.Reason += ": " + r.Reason
		}
	case e.Warning == "" && e.Stopping == "":
		return
	}
	r.diary.Add(x)
}

func noted(ms SplitMetrics) (all []record.Metric) {
	for _, m := range ms {
		split := m.Split
		if split == "" {
			split = onTest
		}
		all = append(all, record.Metric{Split: split, Name: m.Name, Value: record.Figure(m.Value)})
	}
	return all
}

// endDiary writes how the run ended, if it failed, and closes the diary.
func (p *part) endDiary(err error) {
	if p.record == nil || p.record.diary == nil {
		return
	}
	if err != nil {
		p.record.diary.Add(record.Event{Time: time.Now(), Seconds: seconds(p.begin), End: &record.End{Error: err.Error(), Epochs: p.result.Epochs, Seconds: p.result.TrainSeconds}})
	}
	d := p.record.diary
	p.record.diary = nil
	if err := d.Close(); err != nil {
		p.emit(Event{Warning: err.Error()})
	}
}

// endRecord ends the record but for the run's events.
func (p *part) endRecord(stopped error) {
	if err := errors.Join(stopped, p.record.close()); err != nil {
		p.emit(Event{Warning: err.Error()})
	}
}
