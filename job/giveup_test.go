package job

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/job/internal/relay"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// A pair is two nodes of which the second sends its rows to the first. A cut of theirs is given up at both when a sink fails at one, and
// ends at both when both have handed their rows over, as [node.Node.Cut] has it.
type pair struct {
	relaying
	rows   [2]int                             // that nodes hand over, a message each
	sink   func(cancel func(error)) node.Sink // the leader's, at the first cut
	owners [2]*cuts.Owner
	taken  []string // what the leader said of cuts

	mu      sync.Mutex
	gaveUp  chan struct{} // of the cut under way
	saved   chan struct{}
	handed  int
	entered int
}

// twoMembers is a session of two nodes of which only the number is asked for.
type twoMembers struct{ coord.Session }

func (twoMembers) Members() []coord.Member { return make([]coord.Member, 2) }

const pairWidth = 10_000

// cut is node.Cut of a node.
func (p *pair) cut(i int, number uint64, sink node.Sink) error {
	p.owners[i].OnCut(number, &train.State{}, nil)
	p.mu.Lock()
	if p.entered++; p.entered%2 == 1 {
		p.gaveUp, p.saved, p.handed = make(chan struct{}), make(chan struct{}), 0
	}
	gaveUp, saved := p.gaveUp, p.saved
	p.mu.Unlock()
	rs := make([]uint64, 7) // a message
	for range p.rows[i] {
		if err := sink(0, rs, make([]float32, len(rs)*pairWidth)); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			select {
			case <-gaveUp:
			default:
				close(gaveUp)
			}
			return err
		}
	}
	p.mu.Lock()
	if p.handed++; p.handed == 2 {
		close(saved)
	}
	p.mu.Unlock()
	select {
	case <-saved:
		return nil
	case <-gaveUp:
		return errors.New("given up by a node")
	}
}

// A pairTaker is the Taker of a node of a pair.
type pairTaker struct {
	*pair
	node int
	next uint64
}

func (k *pairTaker) Begin() (cuts.Plan, error) {
	k.next++
	return cuts.Plan{Number: k.next}, nil
}

func (k *pairTaker) Take(ctx context.Context, c *cuts.Cut) (json.RawMessage, error) {
	if k.node == 1 {
		s := relay.NewSender(ctx, func(q []byte, deliver func([]byte)) func(context.Context) error {
			deliver(k.hub.Answer(1, q))
			return func(ctx context.Context) error { return context.Cause(ctx) }
		}, c.Number, []int{pairWidth})
		return nil, s.Close(c.Rows(ctx, s.Write))
	}
	sink := func(int, []uint64, []float32) error { return nil }
	if c.Number == 1 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		sink = k.sink(cancel)
	}
	defer k.end(c.Number)
	return nil, k.relaying.rows(ctx, c, sink)
}

func (k *pairTaker) Taken(_ context.Context, _ *cuts.Cut, reports []cuts.Report) error {
	k.taken = append(k.taken, reports[0].Err+"|"+reports[1].Err)
	return nil
}

// The leader that takes no more rows, and has none itself, has the others give the cut up, and takes the next one.
func TestALeaderThatTakesNoMoreRowsHoldsUpNobody(t *testing.T) {
	full := errors.New("disk full")
	for what, sink := range map[string]func(cancel func(error)) node.Sink{
		"its disk is full": func(func(error)) node.Sink { return func(int, []uint64, []float32) error { return full } },
		"it has given the cut up": func(cancel func(error)) node.Sink {
			return func(int, []uint64, []float32) error { cancel(full); return nil }
		},
		"it gives up before a row": func(cancel func(error)) node.Sink { cancel(full); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			p := &pair{sink: sink, rows: [2]int{0, 30}}
			p.relaying = relaying{part: &part{session: twoMembers{}}, hub: relay.NewHub([]int{pairWidth})}
			ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute has gone by"))
			defer stop()
			x := traintest.NewExchange(2)
			var ended sync.WaitGroup
			for i := range p.owners {
				p.owners[i] = cuts.New(cuts.Config{Leader: i == 0, Taker: &pairTaker{pair: p, node: i}, Exchange: x.Of(i),
					Due: func() time.Time { return time.Time{} },
					Rows: func(_ context.Context, number uint64, _ node.Which, sink node.Sink) (node.CutStats, error) {
						return node.CutStats{}, p.cut(i, number, sink)
					}})
			}
			for _, o := range p.owners {
				ended.Go(func() { _ = o.Run(ctx) }) // Finish says how it ended
				ended.Go(func() {
					o.Start()
					for range 3 {
						if err := o.Boundary(ctx, &train.State{}, o.Taker); err != nil {
							t.Error(err)
						}
					}
					if err := o.Finish(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			ended.Wait()
			if len(p.taken) != 3 || !strings.HasPrefix(p.taken[0], full.Error()) || !strings.Contains(p.taken[0], "no more rows of cut 1") || p.taken[1] != "|" || p.taken[2] != "|" {
				t.Errorf("of three cuts the leader heard %q", p.taken)
			}
		})
	}
}
