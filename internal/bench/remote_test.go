package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// asPeer is the argument with which the test binary is the other process.
const asPeer = "bench-peer"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == asPeer || os.Args[1] == asTrainer) {
		serve := ServePeer
		if os.Args[1] == asTrainer {
			serve = serveTrainer
		}
		if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestRemoteCasesMeasureBothProcesses(t *testing.T) {
	o := small()
	o.Only = []string{"remote/pull/10 keys of 16 floats", "remote/push/10 keys of 16 floats", "localize"}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		e := x.Ends
		if e == nil {
			t.Fatalf("%s has no figures of two processes", x.Name)
		}
		asked, answered := 0, 4*e.Keys*e.Floats
		if strings.Contains(x.Name, "push") {
			asked, answered = answered, 0
		}
		if e.AskBytes <= asked || e.AnswerBytes < answered {
			t.Errorf("%s: calls of %d and %d bytes, want more than %d and %d", x.Name, e.AskBytes, e.AnswerBytes, asked, answered)
		}
		for name, c := range map[string]Calls{"path": e.Path, "echo": e.Echo} {
			if !(c.P50 > 0) || c.P50 > c.P99 || !(c.KeysPerSecond.Median > 0) {
				t.Errorf("%s, %s: %+v", x.Name, name, c)
			}
		}
		// The clock of processor time may be coarse, but not over a whole case.
		if e.Path.Caller.Q3+e.Path.Owner.Q3 <= 0 {
			t.Errorf("%s took no processor time: %+v", x.Name, e.Path)
		}
	}
}

// A list of keys that was sent before would travel as its hash.
func TestCallsHaveKeysOfTheirOwn(t *testing.T) {
	o := small()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	p, err := o.pair(ctx, 4, placement.Static)
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]godwit.Key, 100), make([]godwit.Key, 100)
	buf := make([]float32, 400)
	for range 20 {
		p.draw(b)
		if slices.Equal(a, b) {
			t.Error("the same keys twice")
		}
		copy(a, b)
		if err := p.node.Worker(0).Pull(ctx, a, buf); err != nil {
			t.Fatal(err)
		}
	}
	if s := p.node.Stats(); s.Remote != 2000 || s.ListHits != 0 {
		t.Errorf("%d accesses were remote and %d lists were known, want 2000 and 0", s.Remote, s.ListHits)
	}
	if err := p.close(ctx); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheOtherProcessIsAnError(t *testing.T) {
	o := small()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o.Peer = []string{os.Args[0], "-test.run=^$"}
	if _, err := o.pair(ctx, 4, placement.Static); err == nil || !strings.Contains(err.Error(), "the other process") {
		t.Errorf("a peer that serves nothing: %v", err)
	}
	o.Peer = nil
	if _, err := o.pair(ctx, 4, placement.Static); err == nil || !strings.Contains(err.Error(), "Options.Peer") {
		t.Errorf("no peer: %v", err)
	}
	o.Peer = small().Peer
	p, err := o.pair(ctx, 4, placement.Static)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ask(ctx, order{Do: "usage"}); err == nil || !strings.Contains(err.Error(), "the other process ended") {
		t.Errorf("a peer that was killed: %v", err)
	}
	_ = p.close(ctx) // the node says, too, that it lost its peer
}

func TestEachPrefetchingLoopDoesWhatTheGoLoopDoes(t *testing.T) {
	const rows, dim = 1000, 7
	for _, op := range []string{"pull", "push", "adagrad"} {
		n := dim
		if op == "adagrad" {
			n = 2 * dim
		}
		keys := uniformKeys(1, rows, 1)[0][0]
		var got [2][]float32
		for i, name := range []string{"Go loop", "prefetching loop"} {
			b := &bare{rows: make([]float32, rows*n)}
			for j := range b.rows {
				b.rows[j] = float32(j % 97)
			}
			buf := make([]float32, len(keys)*dim)
			for j := range buf {
				buf[j] = float32(j % 89)
			}
			_, loops := programs(context.Background(), op, &node.Cluster{Nodes: []*node.Node{{}}}, b, dim)
			at := slices.IndexFunc(loops, func(l loop) bool { return l.name == name })
			if err := loops[at].call(0, keys, buf); err != nil {
				t.Fatal(err)
			}
			got[i] = append(b.rows, buf...)
		}
		for i := range got[0] {
			if d := got[0][i] - got[1][i]; d > 1e-3 || d < -1e-3 {
				t.Fatalf("%s: float %d is %v, want %v", op, i, got[1][i], got[0][i])
			}
		}
	}
}

// The first turn of the plain connection is a cold one, and that of the path is not: neither counts.
func TestTheFirstTurnBetweenProcessesDoesNotCount(t *testing.T) {
	turns := func(first float64) program {
		return program{calls: []float64{first, first, 1, 1, 1, 1}, here: []float64{first, 1, 1}, there: []float64{first, 1, 1},
			both: []float64{first, 1, 1}, rates: []float64{first, 1, 1}}
	}
	c := &exchange{remote: remote{keys: 1, dim: 1}, calls: 2, path: turns(2), plain: turns(100)}
	e := c.ends()
	if e.Echo.P99 != 1 || e.Path.P99 != 1 || e.Echo.Both.Q3 != 1 || e.Path.KeysPerSecond.Q3 != 1 || e.ProcessorRatio.Q1 != 1 {
		t.Errorf("%+v", e)
	}
}
