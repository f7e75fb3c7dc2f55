package watch

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/replay"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// Whatever is known when something is decided, what is recorded leads to the same.
func TestWhatIsRecordedLeadsToTheSameDecision(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 4, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Plain: true, Header: trace.Header{Run: "r", Policy: "adapm", Nodes: 3, Tables: trace.TablesOf(m)}})
	if err != nil {
		t.Fatal(err)
	}
	tr := NewTracer(w, 0, func() int64 { return 1 }, func() godwit.Clock { return 1 })
	policy := placement.AdaPM
	tr.Asks(policy, nil)
	both := []bool{false, true}
	var want []trace.Choice
	for _, wants := range both {
		for _, fixed := range both {
			for _, full := range both {
				for _, asked := range []placement.Ask{placement.Nothing, placement.Copy, placement.Move} {
					for _, others := range [][]godwit.NodeID{nil, {1}, {2, 1}} {
						p := protocol.Placing{Situation: placement.Situation{SelfWants: wants, Others: others, Asked: asked, Asker: 1}, Fixed: fixed, Full: full}
						if asked == placement.Nothing {
							p.Situation.Asker = godwit.NoNode
						}
						p.Chosen = policy.Decide(p.Situation)
						tr.decided(protocol.Decision{Key: 1, Placing: &p})
						want = append(want, choiceOf(p.Done()))
					}
				}
			}
		}
	}
	for _, present := range []godwit.Version{9, 12, 1 << 40} { // of the changes since version 1, or since one short before, the node made 8
		for _, since := range []godwit.Version{1, present - 8, present - min(20, present-1)} {
			p := protocol.Placing{Situation: placement.Situation{Asked: placement.Move, Asker: 1}, Bid: true, Since: since, Present: present, Pushes: 8}
			if intent.Wins(p.Since, p.Present, p.Pushes) {
				p.Chosen = policy.Decide(p.Situation)
			}
			tr.decided(protocol.Decision{Key: 1, Placing: &p})
			want = append(want, choiceOf(p.Done()))
		}
	}
	for _, full := range both {
		for _, patience := range []uint8{0, 4} {
			x := protocol.Wishing{Full: full, Miss: intent.Miss{Copies: true, Patience: patience, Cost: 100, Seen: 5}}
			tr.decided(protocol.Decision{Key: 1, Wishing: &x})
			want = append(want, map[intent.Advice]trace.Choice{intent.Copy: trace.AskCopy}[x.Done()])
		}
	}
	for _, long := range []bool{true, false} {
		for _, fetched := range both {
			u := intent.Use{Pace: intent.Pace{Took: 600, Long: 1000, Fetched: fetched}, Step: true}
			if long {
				u.Took = 1000
			}
			means := tr.Means()
			means.Decided([]godwit.Key{1}, u)
			means.Decided([]godwit.Key{1}, u) // which is no news
			done := trace.AskCopy
			if u.Fetches() {
				done = trace.FetchAhead
			}
			want = append(want, done)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	if err := read.Events(0, func(e trace.Event) bool {
		if err := replay.Check(policy, &e); err != nil {
			t.Errorf("decision %d: %v", i, err)
		}
		if i >= len(want) || e.Decision.Done != want[i] {
			t.Errorf("decision %d is %v, want one of %v", i, e.Decision.Done, want)
		}
		i++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if i != len(want) {
		t.Errorf("%d decisions were recorded of %d", i, len(want))
	}
}
