package node

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry"
)

// Of keys that were announced and came, those that were not accessed show as waste; waits and
// latencies of those that were not announced show where the time went.
func TestASnapshotTellsWasteWaitsAndLatencies(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 1<<14, 1), Policy: placement.AdaPM, Workers: 1})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n, w := c.Nodes[0], c.Nodes[0].Worker(0)
	theirs := homedAt(t, n, 1, 1<<12)
	used, unused, asked := theirs[:1<<11], theirs[1<<11:3<<10], theirs[3<<10:]
	for _, keys := range [][]godwit.Key{used, unused} {
		if err := w.Intent(keys, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "what was announced came", func() bool { return n.Stats().Moves+n.Stats().Copies == 3<<10 })
	for _, keys := range [][]godwit.Key{used, asked} {
		if err := w.Pull(ctx, keys, make([]float32, len(keys))); err != nil {
			t.Fatal(err)
		}
	}
	w.Advance()
	eventually(t, "the intents ended", func() bool { return n.Intents() == 0 })
	s := n.Snapshot()
	x := s.Waste
	if x.Unused == 0 || x.Unused*2 > x.Intents || x.Accesses == 0 {
		t.Errorf("of the keys of %d intents, %d were not accessed; want a third", x.Intents, x.Unused)
	}
	if len(s.Peers) != 1 || s.Peers[0].Latency.Count() == 0 || s.Peers[0].Bytes == 0 || s.Leads.Count() != 3<<10 {
		t.Errorf("peers: %+v; %d leads", s.Peers, s.Leads.Count())
	}
	if s.Clocks != (telemetry.Clocks{Sum: 1, Furthest: 1, Slowest: 1}) || s.Intents.Keys != 3<<10 || s.Intents.N < 2 || s.Intents.Ahead != 0 {
		t.Errorf("clocks %+v, intents %+v", s.Clocks, s.Intents)
	}
	if i := waitFor(&s, "answers"); s.Waits[i].N == 0 || s.Waits[i].Time == 0 || s.Waits[i].Time != n.Stats().Waited {
		t.Errorf("waits %+v, in all %v", s.Waits, n.Stats().Waited)
	}
	st := n.Stats()
	if len(s.Tables) != 1 || s.Tables[0].Main != st.Local || s.Tables[0].Missing < 1<<10 || s.Tables[0].Main+s.Tables[0].Replica+s.Tables[0].Missing != 3<<10 || s.Tables[0].Moves != st.Moves || s.Tables[0].Copies != st.Copies {
		t.Errorf("tables %+v; %+v", s.Tables, st)
	}
	bytes := uint64(0)
	for _, k := range s.Sent {
		bytes += k.Bytes
	}
	if bytes == 0 {
		t.Error("no bytes by kind of record")
	}
}

func waitFor(s *telemetry.Snapshot, cause string) (i int) {
	for i = range s.Waits {
		if s.Waits[i].For == cause {
			return i
		}
	}
	return -1
}
