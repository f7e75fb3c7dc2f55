package sim

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// unannounced runs programs that announce nothing on two nodes of one worker, where node 0 is the
// home of the key: it pushes, while node 1 does what use does.
func unannounced(t *testing.T, relaxed bool, steps int, use func(ctx context.Context, w godwit.Worker, key []godwit.Key, v []float32) error) (at [2]node.Stats, hash uint64) {
	t.Helper()
	return unannouncedTo(t, "", relaxed, steps, use)
}

// unannouncedTo is unannounced with a trace in dir; empty: there is none.
func unannouncedTo(t *testing.T, dir string, relaxed bool, steps int, use func(ctx context.Context, w godwit.Worker, key []godwit.Key, v []float32) error) (at [2]node.Stats, hash uint64) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 40, Dim: 4, Relaxed: relaxed})
	if err != nil {
		t.Fatal(err)
	}
	made, closed := writers(t, dir, 2, m, placement.Adaptive)
	defer closed()
	c, err := New(Config{Trace: made, Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: placement.Adaptive, Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 20 * time.Microsecond, Key: 100}})
	if err != nil {
		t.Fatal(err)
	}
	key := []godwit.Key{0}
	for c.hosts[0].node.Home(key[0]) != 0 {
		key[0]++
	}
	r, err := c.Run(t.Context(), func(ctx context.Context, w godwit.Worker) error {
		v := make([]float32, 4)
		for i := range steps {
			err := error(nil)
			switch {
			case w.ID().Node == 1:
				err = use(ctx, w, key, v)
			case i%8 == 0:
				err = w.Push(ctx, key, v)
			}
			if err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for i, h := range c.hosts {
		at[i] = h.node.Stats()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return at, r.Hash
}

func pulls(ctx context.Context, w godwit.Worker, key []godwit.Key, v []float32) error {
	return w.Pull(ctx, key, v)
}

// A copy that is only read leaves no trace of its use at each read, and stays nevertheless.
func TestALearnedCopyThatIsOnlyReadStays(t *testing.T) {
	at, hash := unannounced(t, true, 4000, pulls)
	if s := at[1]; s.Learned == 0 || s.Drops > 1 || s.NoMessage() < 0.95 || s.Late != 0 {
		t.Errorf("%d copies were learned and %d dropped, %.3f of the pulls took no message, %d were late", s.Learned, s.Drops, s.NoMessage(), s.Late)
	}
	if s := at[0]; s.Replica+s.Remote > 0 {
		t.Errorf("the owner was served at %d replicas and by %d messages: the key has moved", s.Replica, s.Remote)
	}
	if again, same := unannounced(t, true, 4000, pulls); same != hash || again != at {
		t.Errorf("a second run is another one: %+v, then %+v", at, again)
	}
}

// A copy that a node has used and uses no more is given up, and costs nothing then.
func TestALearnedCopyThatIsUsedNoMoreIsGivenUp(t *testing.T) {
	at, _ := unannounced(t, true, 12_000, func(ctx context.Context, w godwit.Worker, key []godwit.Key, v []float32) error {
		if w.Clock() < 500 {
			return w.Pull(ctx, key, v)
		}
		key = []godwit.Key{key[0] ^ 1}
		return w.Pull(ctx, key, v)
	})
	if s := at[1]; s.Drops == 0 || s.Learned > 4 {
		t.Errorf("%d copies were learned and %d dropped", s.Learned, s.Drops)
	}
	if s := at[0]; s.Refreshes > 200 {
		t.Errorf("%d refreshes of a copy that is not used any more", s.Refreshes)
	}
}

// Of a table that is not relaxed, a key that is only read stays, and one copy of it.
func TestAKeyOfAnotherTableIsNotCopied(t *testing.T) {
	at, _ := unannounced(t, false, 1000, pulls)
	if s := at[1]; s.Copies+s.Moves+s.Learned > 0 || s.Remote != 1000 {
		t.Errorf("%d copies, %d moves, %d of 1000 pulls by message", s.Copies, s.Moves, s.Remote)
	}
}
