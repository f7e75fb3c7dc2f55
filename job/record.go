package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/train/task"
)

// A recorder writes what a node does to the folder of its run, and, at the node that leads, the run's events.
// A nil recorder writes nothing.
type recorder struct {
	*recording.Node
	diary     *record.Diary        // nil at nodes that do not lead
	collector *recording.Collector // of other nodes' records; nil: there is none
	temp      string               // a folder that is removed at the end; empty: none
}

// beginTrace begins the record of the node, if there is to be one.
func (p *part) beginTrace(m *godwit.Model) (err error) {
	if p.cfg.Trace == "" && p.spec.Traced == "" {
		return nil
	}
	h := record.Header{Run: p.run, Policy: p.spec.Policy, Node: p.session.Self(), Nodes: len(p.session.Members()), Workers: p.cfg.workers(p.spec)}
	r, dir, keys := &recorder{}, p.cfg.Trace, p.cfg.TraceKeys
	if dir == "" {
		if err := r.temporary(); err != nil { // the run does as well without being watched
			p.emit(Event{Warning: fmt.Sprintf("what this node does is not shown: %v", err)})
			return nil
		}
		dir, keys = r.temp, p.spec.Traced
	}
	if r.Node, err = recording.Begin(recording.Config{Dir: filepath.Join(dir, p.run), Header: h, Model: m, Keys: keys, Send: p.spec.Traced != "" && !p.cfg.leads, Temporary: r.temp != "",
		Warn: func(err error) { p.emit(Event{Warning: err.Error()}) }}); err != nil {
		return errors.Join(err, r.remove())
	}
	p.record = r
	if !p.cfg.leads {
		return nil
	}
	if err := p.writeNames(r); err != nil {
		return err
	}
	if p.spec.Traced != "" {
		r.collector = recording.NewCollector(r.Dir, r.Header(), r.Tables)
	}
	r.diary, err = record.NewDiary(r.Dir, p.run, p.spec.Policy)
	return err
}

// remove removes the folder, if it is temporary.
func (r *recorder) remove() error {
	if r.temp == "" {
		return nil
	}
	return os.RemoveAll(r.temp)
}

// writeNames writes what the rows of tables are called, where the task knows it.
func (p *part) writeNames(r *recorder) error {
	named, ok := p.task.(task.Named)
	if !ok {
		return nil
	}
	for i, t := range r.Tables {
		if names := named.Names(t.Name); names != nil {
			if err := trace.WriteNames(r.Dir, i, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginSamples begins to take samples of the node, which has started.
func (p *part) beginSamples() error {
	if p.record == nil {
		return nil
	}
	return p.record.Sample(p.node, func() int64 { return p.items(p.seen.Load()) })
}

// traceOf returns what the node's keys are traced by.
func (r *recorder) traceOf() *trace.Writer {
	if r == nil {
		return nil
	}
	return r.Trace()
}

// stop takes the last sample, before the node ends, and, if the run goes well, sends what was not sent.
func (r *recorder) stop(well bool) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Stop(), r.Sent(well))
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
	case e.Checkpoint != nil && e.Checkpoint.Error != "" && !e.Checkpoint.GivenUp:
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
	if err := errors.Join(stopped, p.record.collector.Close(), p.record.Close(), p.record.remove()); err != nil {
		p.emit(Event{Warning: err.Error()})
	}
}
