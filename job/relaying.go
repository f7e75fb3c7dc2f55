package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/job/internal/relay"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// A relaying carries rows between the nodes and the leader: those of cuts that the leader keeps in memory, and those of checkpoints where nodes do
// not see one folder ([Spec].Relayed). A nil one stands for runs that do neither.
type relaying struct {
	*part
	hub    *relay.Hub // at the leader
	widths []int      // floats of a row of each table, with its state
	served bool       // training answers questions at the leader, beside the hub
}

// openRelay finds out which node leads, and has it take rows of the others where it holds some, or checkpoints are relayed.
func (p *part) openRelay(ctx context.Context, holds bool) error {
	if len(p.session.Members()) == 1 {
		return nil
	}
	if err := p.findLeader(ctx); err != nil {
		return err
	}
	if !holds && !p.spec.Relayed {
		return nil
	}
	r := &relaying{part: p}
	p.relay = r
	m := p.env.Workers[0].Model()
	for i := range m.Tables() {
		r.widths = append(r.widths, m.TableRowLen(i))
	}
	if p.leads() {
		r.hub = relay.NewHub(r.widths)
		if p.relays() {
			r.serve(nil)
		}
		p.env.Serve = func(answer func(int, []byte) []byte) { r.served = true; r.serve(answer) }
	}
	return nil
}

// findLeader finds out which node leads the cuts: that with the checkpoints, or the first, where there are none.
func (p *part) findLeader(ctx context.Context) error {
	if p.spec.Checkpoint == "" {
		return nil
	}
	var mine []byte
	if p.cfg.saver != nil {
		mine = []byte{1}
	}
	all, err := p.env.Gather(ctx, "job leader", mine)
	if err != nil {
		return err
	}
	for i, b := range all {
		if len(b) > 0 {
			p.leader = godwit.NodeID(i)
			return nil
		}
	}
	return errors.New("job: no node of the run has its checkpoints")
}

// fromLeader hands what the leader of the cuts has to all nodes, of any size, and returns it. All nodes call it; those that do not lead have nothing.
func (p *part) fromLeader(ctx context.Context, name string, mine []byte) (all []byte, err error) {
	for {
		var piece []byte
		if p.leads() {
			n := min(len(mine), coord.MaxPayload-1)
			more := byte(0)
			if n < len(mine) {
				more = 1
			}
			piece, mine = append([]byte{more}, mine[:n]...), mine[n:]
		}
		texts, err := p.env.Gather(ctx, name, piece)
		if err != nil {
			return nil, err
		}
		b := texts[p.leader]
		if len(b) == 0 {
			return nil, fmt.Errorf("job: %s: node %d, which leads the cuts, says nothing", name, p.leader)
		}
		all = append(all, b[1:]...)
		if b[0] == 0 {
			return all, nil
		}
	}
}

// leads reports whether this node leads the cuts.
func (p *part) leads() bool { return p.leader == p.session.Self() }

// relays reports whether the nodes send the rows of checkpoints to the leader.
func (p *part) relays() bool { return p.relay != nil && p.spec.Relayed }

// serve has the hub answer its questions, and training the others; nil: there are none.
func (r *relaying) serve(training func(node int, question []byte) []byte) {
	if training == nil {
		training = noTraining
	}
	r.part.serve(func(from int, q []byte) []byte {
		if relay.IsQuestion(q) {
			return r.hub.Answer(from, q)
		}
		return training(from, q)
	})
}

// restored has questions of training wait until it answers them.
func (r *relaying) restored() {
	if r != nil && r.leads() {
		r.node.Serve(nil)
	}
}

// begin has the hub answer questions of a training that has none.
func (r *relaying) begin() {
	if r != nil && r.leads() && !r.served {
		r.serve(nil)
	}
}

func (r *relaying) ask(question []byte, deliver func([]byte)) func(context.Context) error {
	return r.node.Ask(r.leader, question, deliver)
}

// send sends the rows of a cut that this node has to the leader.
func (r *relaying) send(ctx context.Context, c *cuts.Cut) error {
	s := relay.NewSender(ctx, r.ask, c.Number, r.widths)
	return s.Close(c.Rows(ctx, s.Write))
}

// rows hands the rows of a cut to a sink, which any number of goroutines may call: those of this node, and those that others send it. A nil
// relaying hands over all: there are no others.
func (r *relaying) rows(ctx context.Context, c *cuts.Cut, sink node.Sink) error {
	if r == nil {
		return c.Rows(ctx, sink)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var others sync.WaitGroup
	others.Go(func() {
		if err := r.hub.Take(ctx, c.Number, len(r.session.Members())-1, sink); err != nil {
			cancel(err)         // the cut is given up
			r.hub.End(c.Number) // nodes with rows left hear of it, and give the cut up: it ends for none before they do
		}
	})
	if err := c.Rows(ctx, sink); err != nil {
		cancel(err)
	}
	others.Wait()
	return context.Cause(ctx)
}

// end says that no rows of a cut are taken any more.
func (r *relaying) end(cut uint64) {
	if r != nil {
		r.hub.End(cut)
	}
}

// give tells the other nodes what was done at the checkpoint that the run goes on from, and has the rows given to them that have their homes there.
func (r *relaying) give(ctx context.Context, c *checkpoint.Checkpoint, s *train.State) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := r.fromLeader(ctx, "job resumed", b); err != nil {
		return err
	}
	errs := make([]error, len(r.session.Members()))
	var all sync.WaitGroup
	for i := range errs {
		if to := godwit.NodeID(i); to != r.session.Self() {
			all.Go(func() {
				errs[i] = r.hub.Give(ctx, i, func(sink node.Sink) error { return c.Rows(ctx, r.mayBeHome(to), sink) })
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// askResumed gets from the leader what was done at the checkpoint that the run goes on from; restore gets the rows.
func (r *relaying) askResumed(ctx context.Context) (s *train.State, restore func() error, err error) {
	b, err := r.fromLeader(ctx, "job resumed", nil)
	if err != nil {
		return nil, nil, err
	}
	s = new(train.State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, nil, fmt.Errorf("what node %d says of it cannot be read: %w", r.leader, err)
	}
	return s, func() error { return relay.Receive(ctx, r.ask, r.widths, r.part.restore) }, nil
}
