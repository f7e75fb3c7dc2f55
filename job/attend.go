package job

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
)

// An Attended is a node of a run that has started, as those see it who watch it.
type Attended struct {
	Run    string        // the run's name
	Policy string        // its policy's
	Self   godwit.NodeID // which node it is
	Node   *node.Node    // the node, which belongs to the run
}

// An Attendant watches a node, as a metrics.Server does.
type Attendant interface {
	// Ready is called once, when all nodes have met and training begins.
	Ready()
	// Close ends the watching, before the node ends. It returns at the end of ctx at the latest, which is 2 s later.
	Close(ctx context.Context) error
}

// attend has the node be watched, if the configuration says by whom.
func (p *part) attend() (err error) {
	if p.cfg.Attend != nil {
		p.attendant, err = p.cfg.Attend(Attended{Run: p.run, Policy: p.spec.Policy, Self: p.session.Self(), Node: p.node})
	}
	return err
}

// ready says that training begins.
func (p *part) ready() {
	p.begun = true
	if p.attendant != nil {
		p.attendant.Ready()
	}
}

// attendTimeout bounds the end of the watching: who reads what is told of a node must not hold up the run.
const attendTimeout = 2 * time.Second

// closeAttendant ends the watching, also when the run was cancelled.
func closeAttendant(ctx context.Context, a Attendant) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attendTimeout)
	defer cancel()
	return a.Close(ctx)
}

// close ends the node, and before that the watching.
func (p *part) close(ctx context.Context) error {
	var err error
	if a := p.attendant; a != nil {
		p.attendant = nil
		err = closeAttendant(ctx, a)
	}
	stopped := p.record.stop(p.session.Err() == nil)
	if p.node != nil {
		err = errors.Join(p.node.Close(ctx), err)
	}
	if p.record != nil {
		p.endRecord(stopped)
	}
	return err
}
