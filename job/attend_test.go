package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/replay"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// An attendant writes down what it is told.
type attendant struct {
	t   *testing.T
	a   Attended
	mu  *sync.Mutex
	log *[]string
}

func (a attendant) add(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*a.log = append(*a.log, what)
}

func (a attendant) Ready() { a.add("ready") }

func (a attendant) Close(context.Context) error {
	if err := a.a.Node.Err(); err != nil {
		a.t.Errorf("node %d was closed before its attendant: %v", a.a.Self, err)
	}
	a.add("close")
	return nil
}

func TestEachNodeIsAttendedFromItsStartToItsEnd(t *testing.T) {
	spec := tiny(2)
	var mu sync.Mutex
	var log []string
	var nodes []int
	_, err := Local(timeout(t), "test", spec, NodeConfig{Attend: func(a Attended) (Attendant, error) {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, int(a.Self))
		if a.Run != "test" || a.Policy != spec.Policy {
			t.Errorf("attended %+v", a)
		}
		return attendant{t, a, &mu, &log}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(nodes)
	slices.Sort(log)
	if !slices.Equal(nodes, []int{0, 1}) || !slices.Equal(log, []string{"close", "close", "ready", "ready"}) {
		t.Errorf("nodes %v were attended, with %q", nodes, log)
	}
}

func TestEveryNodeTracesItsKeys(t *testing.T) {
	dir := t.TempDir()
	spec := tiny(2)
	r, err := Local(timeout(t), "test", spec, NodeConfig{Trace: dir})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range tr.Header.Tables {
		b, err := os.ReadFile(filepath.Join(dir, "test", trace.NamesFile(i)))
		if err != nil || uint64(strings.Count(string(b), "\n")) < x.Rows {
			t.Errorf("the names of table %q are %.100q (%v)", x.Name, b, err)
		}
	}
	p, err := placement.ByName(tr.Header.Policy)
	if err != nil {
		t.Fatal(err)
	}
	var made, moves, decided uint64
	for n := range 2 {
		err := tr.Events(godwit.NodeID(n), func(e trace.Event) bool {
			switch e.Kind {
			case trace.Created:
				made++
			case trace.Arrived:
				moves++
			case trace.Decided:
				decided++
				if err := replay.Check(p, &e); err != nil {
					t.Error(err)
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if tr.Header.Run != "test" || moves < r.Stats.Moves || made == 0 || decided == 0 {
		t.Errorf("the trace of run %q has %d keys, %d moves and %d decisions, there were at least %d moves", tr.Header.Run, made, moves, decided, r.Stats.Moves)
	}
	isRecorded(t, dir, r)
	_, err = Local(timeout(t), "other", spec, NodeConfig{Trace: dir, TraceKeys: "nothing:1"})
	if err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a table that is not there is traced: %v", err)
	}
}

// isRecorded looks whether the samples and events of a run of two nodes say what its result does.
func isRecorded(t *testing.T, dir string, result *Result) {
	t.Helper()
	r, err := record.Open(filepath.Join(dir, "test"))
	if err != nil {
		t.Fatal(err)
	}
	var items, steps int64
	var accesses, counted uint64
	owned := 0
	for _, n := range r.Nodes {
		s := n.Samples[len(n.Samples)-1]
		items, steps, accesses, owned = items+s.Items, steps+s.Steps, accesses+s.Accesses.All(), owned+s.Owned
		for _, u := range s.Tables {
			counted += u.Accesses
		}
		if n.Header.PID != os.Getpid() || s.Process.Heap == 0 || len(s.Waits) == 0 {
			t.Errorf("%+v: %+v", n.Header, s)
		}
	}
	var trained int64
	epochs := 0
	for _, e := range r.Events {
		if e.Epoch != nil {
			trained += e.Epoch.Items
			epochs++
		}
	}
	if items != trained || steps == 0 || owned == 0 || accesses < result.Stats.Accesses() || counted > accesses || epochs != result.Epochs || r.Start() == nil || r.Start().Task != "kge" || len(r.Start().Nodes) != 2 {
		t.Errorf("%d examples by samples, %d by events, %d steps, %d and %d accesses, %d epochs, start %+v", items, trained, steps, accesses, counted, epochs, r.Start())
	}
	if e := r.End(); e == nil || e.Error != "" || len(e.Metrics) != len(result.Test) || r.Live() {
		t.Errorf("the end is %+v", e)
	}
}

func TestARunThatFailedSaysSoInItsEvents(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(timeout(t))
	spec := tiny(1)
	spec.Options.Epochs = 1000
	_, err := Local(ctx, "test", spec, NodeConfig{Trace: dir, Progress: func(e Event) {
		if e.Epoch != nil {
			cancel()
		}
	}})
	if err == nil {
		t.Fatal("a run was cancelled, and went well")
	}
	r, err := record.Open(dir)
	if err != nil || r.End() == nil || r.End().Error == "" {
		t.Errorf("the events are %+v (%v)", r, err)
	}
}

// A stuck attendant watches somebody who does not let it go.
type stuck struct{}

func (stuck) Ready() {}

func (stuck) Close(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(time.Minute):
		return errors.New("the end of the watching has no bound")
	}
}

// Who watches a node holds up the end of its run for a moment only, and is given that moment also by a run that was cancelled.
func TestTheEndOfTheWatchingIsBounded(t *testing.T) {
	if err := closeAttendant(context.Background(), stuck{}); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := closeAttendant(cancelled, checks(func(ctx context.Context) error { return ctx.Err() })); err != nil {
		t.Errorf("the watching of a run that was cancelled has no time to end: %v", err)
	}
}

// checks are done when the watching ends.
type checks func(context.Context) error

func (checks) Ready() {}

func (c checks) Close(ctx context.Context) error { return c(ctx) }
