package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// traced runs workers that announce and access keys which move all the time, and returns the hash
// of the run. Events are written to dir; empty: there is no trace. Look is called at the end.
func traced(t *testing.T, dir string, look func(c *Cluster, r *Result)) uint64 {
	t.Helper()
	const keys = 300
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Nodes: 3, Workers: 2, Seed: 7, Model: m, Policy: placement.AdaPM, Network: badNetwork(t)}
	var ws []*trace.Writer
	if dir != "" {
		ks, err := trace.ParseKeys("", m)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Trace = func(n godwit.NodeID) (*trace.Writer, error) {
			w, err := trace.Create(trace.Config{Dir: dir, Keys: ks, Plain: true, Header: trace.Header{Run: "r", Policy: "adapm", Node: n, Nodes: 3, Tables: trace.TablesOf(m)}})
			ws = append(ws, w)
			return w, err
		}
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context(), func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(uint64(w.ID().Node), uint64(w.ID().Local)))
		ks, vals := make([]godwit.Key, 4), make([]float32, 8)
		for range 60 {
			for i := range ks {
				ks[i] = godwit.Key(rng.Uint64N(keys))
			}
			if err := w.Intent(ks, w.Clock()+2, w.Clock()+5); err != nil {
				return err
			}
			if err := w.Pull(ctx, ks, vals); err != nil {
				return err
			}
			if err := w.Push(ctx, ks, vals); err != nil {
				return err
			}
			w.Advance()
		}
		for range 8 {
			w.Advance()
		}
		return w.Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if look != nil {
		look(c, r)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return r.Hash
}

func badNetwork(t *testing.T) Network {
	t.Helper()
	n, err := NetworkNamed("bad")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A trace has every move, replica and access of a run, gives each key one owner an epoch, and ends
// with what the nodes have. It changes nothing, and is the same for the same seed.
func TestATraceIsTheRun(t *testing.T) {
	dir, again := t.TempDir(), t.TempDir()
	hash := traced(t, dir, func(c *Cluster, r *Result) {
		tr, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		count := map[trace.Kind]uint64{}
		for n := range 3 {
			has, err := tr.At(godwit.NodeID(n), math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			for k := godwit.Key(0); k < 300; k++ {
				x := c.hosts[n].virtual.Holding(k)
				if got, ok := has[k]; ok != (x.State != "absent") || ok && (got.Main != x.Main() || got.Epoch != x.Epoch) {
					t.Errorf("node %d has %s of key %d since epoch %d, the trace says %+v (%v)", n, x.State, k, x.Epoch, got, ok)
				}
			}
		}
		for k := godwit.Key(0); k < 300; k++ {
			l, err := tr.Life(k)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range l.Reigns {
				if x.Epoch != godwit.Epoch(i) {
					t.Errorf("reign %d of key %d is %+v", i, k, x)
				}
			}
			for _, e := range l.Events {
				if e.Kind == trace.Accessed {
					count[e.Kind] += uint64(e.N)
				} else {
					count[e.Kind]++
				}
			}
		}
		s := r.Sum()
		if count[trace.Arrived] != s.Moves || count[trace.Left] != s.Moves || count[trace.Copied] != s.Copies || count[trace.Ended] != s.Drops || count[trace.Accessed] != s.Accesses() {
			t.Errorf("the trace has %v, the stats are %+v", count, s)
		}
		if s.Moves < 100 || s.Drops < 20 || count[trace.Wanted] != count[trace.Unwanted] {
			t.Errorf("%d moves, %d drops, %v", s.Moves, s.Drops, count)
		}
	})
	if h := traced(t, "", nil); h != hash {
		t.Errorf("without a trace the run has hash %x, with one %x", h, hash)
	}
	traced(t, again, nil)
	for n := range 3 {
		name := filepath.Join("node-"+string(rune('0'+n)), "000001.trace")
		a, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(again, name))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s has %d bytes, and of the same seed again %d others (%v)", name, len(a), len(b), err)
		}
	}
}
