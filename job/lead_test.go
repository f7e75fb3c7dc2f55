package job

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
)

// A memory coordinator is one for nodes of this process. It notes what it is called for.
type memory struct {
	hub    *cmem.Hub
	forget error

	mu     sync.Mutex
	calls  []string
	spec   []byte
	stored chan struct{} // closed when spec is set
}

func newMemory(t *testing.T, nodes int) *memory {
	t.Helper()
	hub, err := cmem.New(coord.Config{Run: "r", Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return &memory{hub: hub, stored: make(chan struct{})}
}

func (m *memory) called(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, what)
}

func (m *memory) Join(ctx context.Context, cfg coord.Config) (coord.Session, error) {
	m.called("join")
	return m.hub.JoinConfig(ctx, cfg)
}

func (m *memory) Configure(_ context.Context, _ string, blob []byte) error {
	m.called("configure")
	m.spec = blob
	close(m.stored)
	return nil
}

func (m *memory) Configuration(ctx context.Context, _ string) ([]byte, error) {
	select {
	case <-m.stored:
		return m.spec, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *memory) Forget(context.Context, string) error {
	m.called("forget")
	return m.forget
}

func (m *memory) Drain(context.Context, string) error {
	m.called("drain")
	return nil
}

func (m *memory) Contact() coord.Contact {
	return coord.Contact{Endpoints: []string{"127.0.0.1:1"}, Token: "secret"}
}

// Lead and Join need no etcd. The leader calls for the other node with a token that
// nobody else knows, and is the last to use the coordinator.
func TestLeadAndJoinRunByAnyCoordinator(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		at := newMemory(t, 2)
		var waiting []Waiting
		lead := Leader{Spec: tiny(2), Run: "r", Coordinator: at, NewToken: fresh}
		lead.Progress = func(e Event) {
			if e.Waiting != nil {
				waiting = append(waiting, *e.Waiting)
			}
		}
		ctx := timeout(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			if r, err := Join(ctx, Joiner{Run: "r", Coordinator: at}); err != nil || r.Nodes != 2 {
				t.Errorf("Join: %+v, %v", r, err)
			}
		})
		r, err := Lead(ctx, lead)
		wg.Wait()
		if err != nil || r.Nodes != 2 {
			t.Fatalf("Lead: %+v, %v", r, err)
		}
		token := ""
		if fresh {
			token = "secret"
		}
		if len(waiting) != 1 || waiting[0].Token != token || waiting[0].Nodes != 1 || !slices.Equal(waiting[0].Endpoints, at.Contact().Endpoints) {
			t.Errorf("a new token: %t: the call was %+v", fresh, waiting)
		}
		if want := []string{"configure", "join", "join", "forget", "drain"}; !slices.Equal(at.calls, want) {
			t.Errorf("the coordinator was called for %v, want %v", at.calls, want)
		}
	}
}

// A leader that fails leaves no spec behind either, and tells why it failed.
func TestALeaderThatFailsForgetsTheSpec(t *testing.T) {
	lost := errors.New("no answer")
	for _, forget := range []error{nil, lost} {
		at := newMemory(t, 3) // the spec has another number: no node can join
		at.forget = forget
		_, err := Lead(timeout(t), Leader{Spec: tiny(2), Run: "r", Coordinator: at})
		if !errors.Is(err, coord.ErrMismatch) {
			t.Errorf("got %v, want %v", err, coord.ErrMismatch)
		}
		want := []string{"configure", "join", "forget", "drain"}
		if forget != nil {
			want = want[:3] // who does not answer is not asked again
		}
		if !slices.Equal(at.calls, want) {
			t.Errorf("the coordinator was called for %v, want %v", at.calls, want)
		}
	}
}

// A run that ended well has its result, though the coordinator does not answer any more.
func TestARunThatEndedWellHasItsResultWithoutTheCoordinator(t *testing.T) {
	at := newMemory(t, 2)
	at.forget = coord.ErrCoordinator
	ctx := timeout(t)
	var warned []string
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := Join(ctx, Joiner{Run: "r", Coordinator: at}); err != nil {
			t.Error(err)
		}
	})
	r, err := Lead(ctx, Leader{Spec: tiny(2), Run: "r", Coordinator: at, NodeConfig: NodeConfig{Progress: func(e Event) {
		if e.Warning != "" {
			warned = append(warned, e.Warning)
		}
	}}})
	wg.Wait()
	if err != nil || r == nil || r.Epochs != 3 {
		t.Errorf("Lead: %+v, %v", r, err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], coord.ErrCoordinator.Error()) {
		t.Errorf("warnings: %q", warned)
	}
}

func TestLongLinesOfProcessesAreCut(t *testing.T) {
	var out strings.Builder
	last := newChildren(&out).copyLines("node process 7", strings.NewReader("begin\n"+strings.Repeat("x", 3*maxLine+9)+"\n\nthe reason why it ended"))
	want := "node process 7: begin\nnode process 7: " + strings.Repeat("x", maxLine) + " …\nnode process 7: \nnode process 7: the reason why it ended\n"
	if last != "the reason why it ended" || out.String() != want {
		t.Errorf("the last line is %q, of %d bytes, want %d", last, out.Len(), len(want))
	}
}
