package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// noTraining answers questions of training when there is none.
func noTraining(int, []byte) []byte {
	return []byte(`{"err":"training has ended, or has not begun"}`)
}

// traced says which keys nodes trace for the leader; empty: none.
func (l *Leader) traced() string {
	if l.Trace == "" {
		return ""
	}
	return cmp.Or(l.TraceKeys, fmt.Sprintf("random=%d", trace.Usual))
}

// temporary makes a folder for what a node does that only the leader is to see.
func (r *recorder) temporary() (err error) {
	r.temp, err = os.MkdirTemp("", "godwit-record-")
	return err
}

// serve has questions of other nodes answered: those that bring records by the collector, if there is one, and others by a function. With nil, all wait.
func (p *part) serve(answer func(node int, question []byte) []byte) {
	if answer == nil || p.record == nil || p.record.collector == nil {
		p.node.Serve(answer)
		return
	}
	c := p.record.collector
	p.node.Serve(func(from int, q []byte) []byte {
		if recording.IsQuestion(q) {
			return c.Answer(from, q)
		}
		return answer(from, q)
	})
}

// collect has records of other nodes taken while training answers no questions at this node.
func (p *part) collect() {
	switch {
	case p.record == nil || p.record.collector == nil:
	case p.relay != nil && p.relay.hub != nil:
		p.relay.serve(nil)
	default:
		p.serve(noTraining)
	}
}

// sendRecord begins to send what this node does to the leader, if that traces.
func (p *part) sendRecord(ctx context.Context) error {
	if p.spec.Traced == "" {
		return nil
	}
	var mine []byte
	if p.cfg.leads {
		mine = []byte{1}
	}
	if p.cfg.leads && p.session.Self() != 0 {
		p.collect() // training has no questions for this node
	}
	all, err := p.env.Gather(ctx, "job record", mine)
	if err != nil || p.cfg.leads || p.record == nil {
		return err
	}
	for i, b := range all {
		if len(b) > 0 {
			p.record.Send(func(q []byte, deliver func([]byte)) func(context.Context) error {
				return p.node.Ask(godwit.NodeID(i), q, deliver)
			})
			return nil
		}
	}
	return errors.New("job: no node of the run leads it")
}
