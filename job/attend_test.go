package job

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
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
	var made, moves uint64
	for n := range 2 {
		err := tr.Events(godwit.NodeID(n), 0, func(e trace.Event) bool {
			switch e.Kind {
			case trace.Created:
				made++
			case trace.Arrived:
				moves++
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if tr.Header.Run != "test" || moves < r.Stats.Moves || made == 0 {
		t.Errorf("the trace of run %q has %d keys and %d moves, there were at least %d", tr.Header.Run, made, moves, r.Stats.Moves)
	}
	_, err = Local(timeout(t), "other", spec, NodeConfig{Trace: dir, TraceKeys: "nothing:1"})
	if err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a table that is not there is traced: %v", err)
	}
}
