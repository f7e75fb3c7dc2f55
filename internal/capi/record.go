package capi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/record"
)

// beginRecord begins to write what the node of this process does, if it is to be. The first node of the run writes its events, too.
func (c *Cluster) beginRecord(cfg *Config, self int) (err error) {
	if cfg.Trace == "" {
		return nil
	}
	if self < 0 || self >= c.nodes {
		return wrong("rank %d of a run of %d nodes", self, c.nodes)
	}
	if cfg.Member == nil && c.nodes > 1 {
		return wrong("a trace of %d nodes in one process: it can be that of one", c.nodes)
	}
	policy := c.cfg.Policy
	if policy == nil {
		policy = placement.Adaptive
	}
	run := filepath.Base(cfg.Trace)
	h := record.Header{Run: run, Policy: policy.Name(), Node: godwit.NodeID(self), Nodes: c.nodes, Workers: c.workers}
	if c.record, err = recording.Begin(recording.Config{Dir: cfg.Trace, Header: h, Model: c.cfg.Model, Send: self != 0}); err != nil {
		return err
	}
	c.cfg.Trace, c.began = c.record.Trace(), time.Now()
	if self != 0 {
		return nil
	}
	if c.diary, err = record.NewDiary(cfg.Trace, run, policy.Name()); err != nil {
		return errors.Join(err, c.record.Close())
	}
	if c.nodes > 1 {
		c.collector = recording.NewCollector(cfg.Trace, c.record.Header(), c.record.Tables)
	}
	c.diary.Add(record.Event{Time: c.began, Start: &record.Start{Task: cfg.Program, Unit: "steps", Nodes: c.members(self)}})
	return nil
}

// sendRecord begins to send the record of this node to the first one, which takes it if it traces as well and does not see this node's folder.
func (c *Cluster) sendRecord() {
	c.record.Send(func(q []byte, deliver func([]byte)) func(context.Context) error { return c.here[0].Ask(0, q, deliver) })
}

// members returns what a node knows of all at first: which there are, and more of itself.
func (c *Cluster) members(self int) []record.Member {
	all := make([]record.Member, c.nodes)
	for i := range all {
		all[i] = record.Member{ID: godwit.NodeID(i), Workers: c.workers}
	}
	all[self].PID = os.Getpid()
	all[self].Host, _ = os.Hostname() // it only serves to be read
	return all
}

// Note adds events to those of the run, if they are written and this is the process that does: JSON of a record.Event, of which epoch, evaluation
// and warning may be set.
func (c *Cluster) Note(event []byte) error {
	var e record.Event
	if err := decode(event, &e, "the event"); err != nil {
		return err
	}
	if e.Start != nil || e.End != nil || e.Checkpoint != "" || e.Stopping != "" {
		return wrong("an event tells of an epoch, an evaluation or a warning")
	}
	e.Time, e.Seconds = time.Now(), time.Since(c.began).Seconds()
	c.diary.Add(e)
	return nil
}

// endRecord ends what is written, after the node.
func (c *Cluster) endRecord() error {
	if err := c.collector.Close(); err != nil { // the run did well
		c.diary.Add(record.Event{Time: time.Now(), Seconds: time.Since(c.began).Seconds(), Warning: err.Error()})
	}
	if c.diary != nil {
		end := &record.End{Reason: "the program closed the cluster", Seconds: time.Since(c.began).Seconds()}
		if c.err != nil {
			end = &record.End{Error: c.err.Error()}
		}
		c.diary.Add(record.Event{Time: time.Now(), Seconds: time.Since(c.began).Seconds(), End: end})
	}
	return errors.Join(c.diary.Close(), c.record.Close())
}
