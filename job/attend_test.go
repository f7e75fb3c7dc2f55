package job

import (
	"context"
	"slices"
	"sync"
	"testing"
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
	if s := a.a.Node.Stats(); a.a.Node.Err() != nil || s.Owned == 0 {
		a.t.Errorf("node %d was closed before its attendant: %v, %d keys", a.a.Self, a.a.Node.Err(), s.Owned)
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
