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

// noTraining answers questions of training while there is none.
func noTraining(int, []byte) []byte {
	return []byte(`{"err":"training has ended, or has not begun"}`)
}

// traced returns which keys nodes trace for the leader, as trace.ParseKeys reads it. It is empty if they trace none.
func (l *Leader) traced() string {
	if l.Trace == "" {
		return ""
	}
	return cmp.Or(l.TraceKeys, fmt.Sprintf("random=%d", trace.Usual))
}

// temporary makes a folder for the record of a node that is written only to be sent to the leader.
func (r *recorder) temporary() (err error) {
	if r.temp, err = os.MkdirTemp("", "godwit-record-"); err != nil {
		err = fmt.Errorf("a folder for what it does: %w: set TMPDIR to one that can be written to", err)
	}
	return err
}

// serve sets who answers the questions of other nodes. The collector, if there is one, answers those that bring records, and a function answers the
// others. If the function is nil, all questions wait for the next call.
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

// collect has the collector take records of other nodes while training answers no questions at this node.
func (p *part) collect() {
	switch {
	case p.record == nil || p.record.collector == nil:
	case p.relay != nil && p.relay.hub != nil:
		p.relay.serve(nil)
	default:
		p.serve(noTraining)
	}
}

// sendRecord begins to send the record of this node to the leader, if the leader traces. All nodes of the run call it.
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
