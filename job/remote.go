package job

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/train/task"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// Conditions that a caller can test with errors.Is, beside those of packages godwit
// and coord, which docs/guarantees.md lists.
var (
	// ErrInterrupted: an end was asked for ([NodeConfig].Stop) before training
	// began, so that there is nothing to keep.
	ErrInterrupted = errors.New("interrupted before training began")
	// ErrLeaderLost: the process that leads the run ended before the run began
	// ([Joiner].LeaderGone).
	ErrLeaderLost = errors.New("leader lost")
)

var errNoCoordinator = errors.New("job: no coordinator by which the nodes find each other: give an etcd.Access, say, as Coordinator")

// A Joiner is another node of a run, as [Join] starts it.
type Joiner struct {
	NodeConfig
	// Coordinator is the leader's ([Leader].Coordinator), as this process reaches it.
	Coordinator coord.Coordinator
	// Run is the name of the run.
	Run string
	// Wait is how long the run's description is waited for; 0 is a minute.
	Wait time.Duration
	// Leader is the number of the process that leads the run and started this one;
	// 0: none did.
	Leader int
	// LeaderGone is to be closed when that process has ended: what this one waits
	// for before the run begins then never comes. (After that, nodes find out
	// about each other.)
	LeaderGone <-chan struct{}
}

// A leaderError is an ErrLeaderLost that names the leader.
type leaderError struct {
	pid int
	run string
}

func (e *leaderError) Error() string {
	return fmt.Sprintf("job: process %d, which leads run %q, ended before the run began: what it said last says why", e.pid, e.run)
}

func (e *leaderError) Unwrap() error { return ErrLeaderLost }

// Join makes this process a node of a run that [Lead] has begun or begins
// elsewhere, and returns the result.
func Join(ctx context.Context, j Joiner) (*Result, error) {
	begin := time.Now()
	if j.Coordinator == nil {
		return nil, errNoCoordinator
	}
	t, err := j.TLS.Config()
	if err != nil {
		return nil, err
	}
	j.leaderGone, j.leaderErr = j.LeaderGone, &leaderError{j.Leader, j.Run}
	spec, err := j.spec(ctx)
	if err != nil {
		return nil, err
	}
	loaded, err := spec.load(ctx, &j.NodeConfig)
	if err != nil && spec.Data != "" && j.Data == "" {
		return nil, fmt.Errorf("%w (so the data lies where the run was begun; if it lies elsewhere on this machine, say where: --data)", err)
	}
	if err != nil {
		return nil, err
	}
	return remote(ctx, &spec, &j.NodeConfig, j.Coordinator, tcp.Network{TLS: t}, j.Run, begin, loaded)
}

// spec reads the run's description.
func (j *Joiner) spec(ctx context.Context) (Spec, error) {
	wait := j.Wait
	if wait == 0 {
		wait = coord.DefaultJoin
	}
	waiting, cancel := j.untilStop(ctx)
	defer cancel(nil)
	limited, stop := context.WithTimeout(waiting, wait)
	defer stop()
	blob, err := j.Coordinator.Configuration(limited, j.Run)
	if err != nil {
		return Spec{}, causeOf(waiting, withAdvice(err))
	}
	return Decode(blob)
}

// stopped returns ErrInterrupted if an end was asked for: before training began, nothing is evaluated or exported, which would replace an earlier model.
func (c *NodeConfig) stopped() error {
	select {
	case <-c.Stop:
		return ErrInterrupted
	default:
		return nil
	}
}

// prepare reads what a run needs in the process that begins it: the data, what the model begins with, and the place of checkpoints. It returns
// ErrInterrupted if an end is asked for meanwhile. Release gives all back that it has opened, also after an error.
func (c *NodeConfig) prepare(ctx context.Context, s *Spec, run string) (t task.Task, err error) {
	if t, err = s.load(ctx, c); err != nil {
		return nil, err
	}
	if err = c.stopped(); err != nil {
		return nil, err
	}
	if c.initial, err = s.initial(ctx, t); err != nil {
		return nil, err
	}
	if c.saver, err = s.prepareSaver(ctx, run, t); err != nil {
		return nil, err
	}
	return t, c.stopped()
}

// release ends what prepare began, of a run with this result or error.
func (c *NodeConfig) release(ctx context.Context, r *Result, err error) {
	c.saver.close(ctx, r, err)
	c.initial.close()
}

// untilStop returns a context for what comes before the run begins. It also ends,
// with ErrInterrupted, when Stop is closed, and with a leaderError when the leader
// is gone.
func (c *NodeConfig) untilStop(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx, which the caller cancels
		select {
		case <-c.Stop:
			cancel(ErrInterrupted)
		case <-c.leaderGone:
			cancel(c.leaderErr)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// unlessStopped calls load and returns what it does, or why untilStop ended before. Nobody waits for load then, and its goroutine
// ends with it, or with the process: a pipe to which nobody writes is read for ever.
func (c *NodeConfig) unlessStopped(ctx context.Context, load func() (task.Task, error)) (task.Task, error) {
	waiting, cancel := c.untilStop(ctx)
	defer cancel(nil)
	type loaded struct {
		task.Task
		err error
	}
	done := make(chan loaded, 1)
	go func() {
		t, err := load()
		done <- loaded{t, err}
	}()
	select {
	case l := <-done:
		return l.Task, l.err
	case <-waiting.Done():
		return nil, context.Cause(waiting)
	}
}

// causeOf returns the reason why a wait of untilStop ended early, where there is one;
// else the error that the wait met.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) || errors.Is(cause, ErrLeaderLost) {
		return cause
	}
	return err
}

// withAdvice adds to an error of access what to do about it.
func withAdvice(err error) error {
	if !errors.Is(err, coord.ErrAccess) {
		return err
	}
	return fmt.Errorf("%w: set %s=TOKEN in the environment, as in the command that the first node printed (for an etcd that has users: %s=USER:PASSWORD)", err, TokenEnv, TokenEnv)
}

// remote joins a run of several nodes and runs this node.
func remote(ctx context.Context, spec *Spec, cfg *NodeConfig, at coord.Coordinator, nw tcp.Network, run string, begin time.Time, loaded task.Task) (*Result, error) {
	addr, err := cfg.listenAddr(at.Contact().Endpoints)
	if err != nil {
		return nil, err
	}
	l, err := nw.Listen(addr)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if addr, err = cfg.advertised(l.Addr()); err != nil {
		return nil, err
	}
	s, err := join(ctx, spec, cfg, at, run, addr, loaded)
	if err != nil {
		return nil, err
	}
	r, err := newPart(spec, cfg, run, begin, loaded, s).execute(ctx, nw, l)
	if cerr := s.Close(context.WithoutCancel(ctx)); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// fingerprint is what the nodes must have in common, a line each.
func fingerprint(spec []byte, loaded task.Task) string {
	hash := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b))[:24] }
	return fmt.Sprintf("version of godwit: %s\nsettings: %s\ndata: %s (%s)\ntask: %s",
		Version(), hash(spec), loaded.Data(), loaded.Summary(), hash([]byte(loaded.Fingerprint())))
}

// join waits until all nodes are there.
func join(ctx context.Context, spec *Spec, cfg *NodeConfig, at coord.Coordinator, run, addr string, loaded task.Task) (coord.Session, error) {
	blob, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := cfg.untilStop(ctx)
	defer cancel(nil)
	s, err := at.Join(ctx, coord.Config{
		Run: run, Nodes: spec.Nodes, Addr: addr, TTL: spec.TTL, Join: spec.Join,
		Fingerprint: fingerprint(blob, loaded),
	})
	if err != nil {
		return nil, causeOf(ctx, withAdvice(err))
	}
	return s, nil
}
