package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/replay"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// decisive runs workers that announce some of what they access, in steps that get longer, and returns the decisions of the trace and the stats.
func decisive(t *testing.T, p placement.Policy, seed uint64) ([]trace.Event, *Result) {
	t.Helper()
	const keys = 60
	dir := t.TempDir()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys / 2, Dim: 2}, godwit.Table{Name: "relaxed", Rows: keys / 2, Dim: 2, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	made, closed := writers(t, dir, 3, m, p)
	c, err := New(Config{Nodes: 3, Workers: 2, Seed: seed, Model: m, Policy: p, Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 20 * time.Microsecond, Key: 100}, LongStep: 60 * time.Microsecond, Trace: made})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context(), func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(seed, uint64(w.ID().Node*8)+uint64(w.ID().Local)))
		v := make([]float32, 2)
		for i := range 500 {
			key := []godwit.Key{godwit.Key(rng.IntN(keys))}
			if i > 250 { // a node has keys of its own
				key[0] = key[0]/3*3 + godwit.Key(w.ID().Node)
			}
			if i%3 == 0 {
				if err := w.Intent(key, w.Clock()+2, w.Clock()+3+godwit.Clock(rng.IntN(2))); err != nil {
					return err
				}
				w.Advance()
				w.Advance()
			}
			for range 1 + i%4 {
				if err := w.Pull(ctx, key, v); err != nil {
					return err
				}
				if err := w.Push(ctx, key, v); err != nil {
					return err
				}
			}
			w.Advance()
		}
		return w.Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	closed()
	return eventsOf(t, dir, 3), r
}

// writers returns what makes the traces of nodes, and what closes them; nil if dir is empty.
func writers(t *testing.T, dir string, nodes int, m *godwit.Model, p placement.Policy) (made func(godwit.NodeID) (*trace.Writer, error), closed func()) {
	t.Helper()
	if dir == "" {
		return nil, func() {}
	}
	ks, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	var ws []*trace.Writer
	made = func(n godwit.NodeID) (*trace.Writer, error) {
		w, err := trace.Create(trace.Config{Dir: dir, Keys: ks, Plain: true, Header: trace.Header{Run: "r", Policy: p.Name(), Node: n, Nodes: nodes, Tables: trace.TablesOf(m)}})
		ws = append(ws, w)
		return w, err
	}
	return made, func() {
		for _, w := range ws {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// eventsOf returns the events of a trace, node by node.
func eventsOf(t *testing.T, dir string, nodes int) (events []trace.Event) {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range nodes {
		if err := tr.Events(godwit.NodeID(n), func(e trace.Event) bool { events = append(events, e); return true }); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// Each decision of a run is in its trace, with what it was decided from: the same pure function decides the same from it again.
func TestWhatWasDecidedFollowsFromWhatIsRecorded(t *testing.T) {
	rules, choices := map[string]int{}, map[trace.Choice]int{}
	for seed, name := range []string{"adaptive", "adapm", "adaptive-move-only", "adaptive-replicate-only", "relocate", "stale", "static(ahead=1)"} {
		p, err := placement.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		events, r := decisive(t, p, uint64(seed+1))
		if name == "adaptive" { // copies that are used no more, too
			dir := t.TempDir()
			at, _ := unannouncedTo(t, dir, true, 6000, func(ctx context.Context, w godwit.Worker, key []godwit.Key, v []float32) error {
				if w.Clock() > 500 {
					key = []godwit.Key{key[0] ^ 1}
				}
				return w.Pull(ctx, key, v)
			})
			events, r.Stats = append(events, eventsOf(t, dir, 2)...), append(r.Stats, at[:]...)
		}
		done, happened := map[trace.Choice]uint64{}, map[trace.Kind]uint64{}
		for i := range events {
			e := &events[i]
			if happened[e.Kind]++; e.Kind != trace.Decided {
				continue
			}
			if err := replay.Check(p, e); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if e.Why() == "" {
				t.Errorf("%s: there are no words for %+v", name, e)
			}
			choices[e.Decision.Done]++
			switch d := e.Decision; {
			case d.Placed != nil && d.Placed.Bid:
				rules["bid"]++
			case d.Placed != nil:
				rules["placed"]++
				done[d.Done]++
			case d.Learned != nil:
				rules["learned"]++
				done[d.Done]++
			case d.Ended != nil:
				rules["ended"]++
			case d.Planned != nil:
				rules["planned"]++
			}
		}
		s := r.Sum()
		if done[trace.MoveTo] != happened[trace.Left] || done[trace.MoveTo] != s.Moves || done[trace.GiveCopy] < happened[trace.Copied] || done[trace.AskCopy] > s.Learned {
			t.Errorf("%s: decided %v, happened %v, stats %+v", name, done, happened, s)
		}
	}
	for _, rule := range []string{"placed", "bid", "learned", "ended", "planned"} {
		if rules[rule] == 0 {
			t.Errorf("nothing was decided by %q: %v", rule, rules)
		}
	}
	for c := trace.Stay; c <= trace.EndCopy; c++ {
		if choices[c] == 0 {
			t.Errorf("never was it decided to %v: %v", c, choices)
		}
	}
	t.Log(rules, choices)
}
