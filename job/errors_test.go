package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// A broken coordinator fails: in Configure and Configuration, or later in Join.
type broken struct {
	configure, join error
	spec            []byte // of Configuration
}

func (b *broken) Configure(_ context.Context, run string, _ []byte) error {
	return wrapped(run, b.configure)
}

func (b *broken) Configuration(ctx context.Context, run string) ([]byte, error) {
	if b.configure == nil && b.spec == nil {
		<-ctx.Done()
		return nil, wrapped(run, context.Cause(ctx))
	}
	return b.spec, wrapped(run, b.configure)
}

func (b *broken) Join(_ context.Context, cfg coord.Config) (coord.Session, error) {
	return nil, wrapped(cfg.Run, b.join)
}

func (*broken) Forget(context.Context, string) error { return nil }
func (*broken) Drain(context.Context, string) error  { return nil }
func (*broken) Contact() coord.Contact {
	return coord.Contact{Endpoints: []string{"127.0.0.1:1"}, Token: "secret"}
}

func wrapped(run string, err error) error {
	if err != nil {
		err = fmt.Errorf("run %s: %w", run, err)
	}
	return err
}

// What a coordinator reports is found in the error of Lead and Join, whatever they add.
func TestErrorsOfTheCoordinatorComeThroughLeadAndJoin(t *testing.T) {
	spec := tiny(2)
	blob, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	member := &coord.MemberError{Member: coord.Member{ID: 1, Addr: "b:1"}, Err: fmt.Errorf("%w: disk full", coord.ErrFailed)}
	for _, want := range []error{
		coord.ErrAccess, coord.ErrCoordinator, coord.ErrMissing, coord.ErrMismatch, coord.ErrComplete, coord.ErrFailed, godwit.ErrPeerLost,
		context.DeadlineExceeded, member,
	} {
		for where, at := range map[string]*broken{"at once": {configure: want}, "when it joins": {join: want, spec: blob}} {
			_, err := Lead(timeout(t), Leader{Spec: spec, Run: "r", Coordinator: at})
			_, jerr := Join(timeout(t), Joiner{Run: "r", Coordinator: at})
			for what, err := range map[string]error{"Lead": err, "Join": jerr} {
				if !errors.Is(err, want) {
					t.Errorf("%s, %s: got %v, want %v", what, where, err, want)
				}
				var m *coord.MemberError
				if found := errors.As(err, &m); found != (want == error(member)) {
					t.Errorf("%s, %s: the member is found: %t in %v", what, where, found, err)
				}
			}
		}
	}
}

// What all nodes find, such as a loss that is no number, one of them tells first. The others return it as what they have found, and what is a
// consequence of it as that.
func TestWhatANodeFindsItselfIsItsErrorThoughAnotherWasFaster(t *testing.T) {
	hub, err := cmem.New(coord.Config{Run: "r", Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan coord.Session, 2)
	for i := range 2 {
		go func() {
			s, err := hub.Join(timeout(t), fmt.Sprint("at-", i))
			if err != nil {
				t.Error(err)
			}
			joined <- s
		}()
	}
	faster, slower := <-joined, <-joined
	if t.Failed() {
		t.FailNow()
	}
	defer faster.Close(t.Context())
	defer slower.Close(t.Context())
	faster.Fail(fmt.Errorf("train: epoch 3: %w", train.ErrDiverged))
	<-slower.Done()
	p := &part{session: slower}
	for found, stays := range map[error]bool{train.ErrDiverged: true, godwit.ErrMemory: true, errNotRestored: true, context.Canceled: false} {
		err := p.cause(fmt.Errorf("train: epoch 3: %w", found))
		if errors.Is(err, found) != stays || errors.Is(err, coord.ErrFailed) == stays {
			t.Errorf("a node that has found %v itself, or not: %v, ends with %v", found, stays, err)
		}
	}
}

func TestWaitsBeforeTheRunEndWithTheirReason(t *testing.T) {
	stop, gone := make(chan struct{}), make(chan struct{})
	close(stop)
	close(gone)
	at := &broken{}
	for want, j := range map[error]Joiner{
		ErrInterrupted:           {Coordinator: at, Run: "r", NodeConfig: NodeConfig{Stop: stop}},
		ErrLeaderLost:            {Coordinator: at, Run: "r", Leader: 7, LeaderGone: gone},
		context.DeadlineExceeded: {Coordinator: at, Run: "r", Wait: time.Millisecond},
	} {
		if _, err := Join(timeout(t), j); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	for what, err := range map[string]error{
		"Lead": second(Lead(t.Context(), Leader{Spec: tiny(2), Run: "r"})),
		"Join": second(Join(t.Context(), Joiner{Run: "r"})),
	} {
		if !errors.Is(err, errNoCoordinator) {
			t.Errorf("%s without a coordinator: %v", what, err)
		}
	}
}

func second(_ *Result, err error) error { return err }

// A command that cannot run, or whose process fails, is a lost node; its cause is kept.
func TestProcessesThatDoNotStartAreTold(t *testing.T) {
	at := &broken{join: errors.New("not reached")}
	_, err := Lead(timeout(t), Leader{Spec: tiny(2), Run: "r", Coordinator: at, Command: []string{filepath.Join(t.TempDir(), "absent")}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command that is not there: %v, want %v", err, fs.ErrNotExist)
	}
	procs := newChildren(t.Output())
	if err := procs.start([]string{"false"}, "X=1"); err != nil {
		t.Skipf("no command to try: %v", err)
	}
	var exit *exec.ExitError
	if err := procs.end(time.Minute); !errors.Is(err, godwit.ErrPeerLost) || !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("a process that fails: %v, want a lost node and its exit code", err)
	}
}

func TestASpecNamesTheFieldAtFault(t *testing.T) {
	for field, spoil := range map[string]func(*Spec){
		"Nodes":   func(s *Spec) { s.Nodes = godwit.MaxNodes + 1 },
		"Workers": func(s *Spec) { s.Workers = -1 },
		"TTL":     func(s *Spec) { s.TTL = coord.MaxTTL + 1 },
		"Join":    func(s *Spec) { s.Join = -1 },
		"Epochs":  func(s *Spec) { s.Options.Epochs = 0 },
		"Batch":   func(s *Spec) { settings(s).Batch = -1 },
	} {
		s := kgeSpec()
		spoil(&s)
		var e *setting.Error
		if _, err := Local(t.Context(), "r", s, NodeConfig{}); !errors.As(err, &e) || e.Field != field {
			t.Errorf("got %v, want a *setting.Error of %s", err, field)
		}
	}
	if _, err := Decode([]byte(`{"task":"kge","sead":1}`)); !errors.Is(err, coord.ErrMismatch) {
		t.Errorf("a spec of another version: %v, want %v", err, coord.ErrMismatch)
	}
	spec := Default(task.DefaultKGE())
	spec.Data = filepath.Join(t.TempDir(), "absent")
	if _, err := Local(t.Context(), "r", spec, NodeConfig{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data that are not there: %v, want %v", err, fs.ErrNotExist)
	}
}
