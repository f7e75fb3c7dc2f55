package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/train/task"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A Leader is the first node of a run of several nodes, as [Lead] starts it.
type Leader struct {
	NodeConfig
	// Spec is what is trained, and how.
	Spec Spec
	// Run is the name of the run.
	Run string
	// Coordinator is where the nodes find each other, such as an etcd.Access. When
	// Lead returns, no node needs it any more, as far as Lead could wait for that:
	// if it is a server in this process (package coord/etcd/server), that can be
	// closed then.
	Coordinator coord.Coordinator
	// NewToken says that the coordinator's token was made for this run, so that
	// nobody else knows it: the event Waiting contains it.
	NewToken bool
	// Command is what runs a node of the same program, such as "godwit node": the
	// program and what comes before its flags. The flags are --quiet, --etcd with the
	// coordinator's endpoints, --run and --leader with the number of this process;
	// and --workers, --data, --profile and --tls-cert, --tls-key, --tls-ca,
	// --tls-name where they are set here. The command of package job/cli takes them.
	// The coordinator's token is in the environment, as TokenEnv. Stdin ends when
	// this process does ([Joiner].LeaderGone). Empty: the other nodes are started by
	// somebody else, with Join, and waited for.
	Command []string
	// Stderr gets the other processes' stderr, with their name before each line; nil
	// is os.Stderr. One goroutine at a time writes to it.
	Stderr io.Writer
}

// TokenEnv is the environment variable by which a process gets the token of its run.
// Unlike a command line, it is not shown to other users of the machine.
const TokenEnv = "GODWIT_TOKEN"

// How long Lead waits for the other processes: when the run ended well, and when it
// failed, for their errors.
const (
	leaveTimeout = 10 * time.Second
	failTimeout  = 2 * time.Second
)

// Lead runs a job of several nodes with this process as the first of them.
func Lead(ctx context.Context, l Leader) (r *Result, err error) {
	begin := time.Now()
	if l.Stderr == nil {
		l.Stderr = os.Stderr
	}
	t, err := l.TLS.Config()
	if err != nil {
		return nil, err
	}
	if err := registered(&l.Spec); err != nil {
		return nil, err
	}
	if l.Coordinator == nil {
		return nil, errNoCoordinator
	}
	if err := l.readable(); err != nil {
		return nil, err
	}
	if err := l.Spec.saveBeside(&l.NodeConfig); err != nil {
		return nil, err
	}
	// Nodes of other machines do not see the folder, nor that of a run that is gone on with.
	l.Spec.Relayed = len(l.Command) == 0 && (l.Spec.Temporary || l.Spec.Relayed)
	l.Spec.Traced = l.traced()
	loaded, err := l.prepare(ctx, &l.Spec, l.Run)
	defer func() { l.release(ctx, r, err) }()
	if err != nil {
		return nil, err
	}
	l.Spec.Join = joinTimeout(&l.Spec, time.Since(begin))
	l.leads = true
	return l.lead(ctx, tcp.Network{TLS: t}, begin, loaded)
}

// readable returns an error if the processes that the leader starts cannot read the data once more, after it.
func (l *Leader) readable() error {
	data := cmp.Or(l.Data, l.Spec.Data)
	if len(l.Command) == 0 || !ReadOnce(data) {
		return nil
	}
	return fmt.Errorf("job: the data are read by each node, and %s can be read only once: write them to a file, or train on one node", data)
}

// ReadOnce reports whether the data at a path can be read only once, and by this process: they come through a pipe, say. Where nothing
// is, it reports false: who reads it says so.
func ReadOnce(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	own := path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/") // what another process has there is another file
	return own || !info.Mode().IsRegular() && !info.IsDir()
}

// registered returns an error if the other nodes cannot know the task of the spec.
func registered(s *Spec) error {
	if s.Task == nil {
		return nil // Check says so
	}
	known, err := task.New(s.Task.Name())
	if err != nil {
		return fmt.Errorf("job: the other nodes could not read what to train: %w; have an init function of the program, which runs at each node, call task.Register", err)
	}
	if reflect.TypeOf(known) != reflect.TypeOf(s.Task) {
		return fmt.Errorf("job: the settings are %T, and those registered as task %q are %T", s.Task, s.Task.Name(), known)
	}
	return nil
}

// joinTimeout is how long nodes wait for each other where loading the data took a
// while here: the others are about to do the same, perhaps all on one machine, or
// on slower ones. A time to wait that is as good as for ever stays.
func joinTimeout(s *Spec, loading time.Duration) time.Duration {
	return max(s.Join, s.Join+time.Duration(max(4, s.Nodes))*loading)
}

// lead runs the job with the processes that it needs.
func (l *Leader) lead(ctx context.Context, nw tcp.Network, begin time.Time, loaded task.Task) (*Result, error) {
	if err := l.configure(ctx); err != nil {
		return nil, err
	}
	procs := newChildren(l.Stderr)
	// A caller that cancels the context does not wait for what follows.
	defer context.AfterFunc(ctx, procs.kill)()
	work, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-procs.failed:
			// If the run has begun, its nodes notice, with better errors.
			select {
			case <-time.After(failTimeout):
				cancel(procs.err)
			case <-work.Done():
			}
		case <-work.Done():
		}
	})
	r, err := l.run(work, nw, begin, loaded, procs)
	timeout := failTimeout
	switch {
	case err == nil:
		timeout = leaveTimeout
	case work.Err() != nil:
		err, timeout = context.Cause(work), 0
	}
	perr := procs.end(timeout)
	cancel(nil)
	watch.Wait()
	if err == nil {
		err = perr
	}
	ferr := l.forget(ctx, err == nil)
	if err != nil {
		return nil, err
	}
	if ferr != nil {
		l.emit(Event{Warning: fmt.Sprintf(
			"the run has ended well, but what the coordinator keeps of it could not be removed, or its nodes did not leave in time: nodes of other machines may report that they lost it: %v", ferr)})
	}
	return r, nil
}

// emit tells of what happens before or after the run itself.
func (l *Leader) emit(e Event) {
	if l.Progress == nil {
		return
	}
	e.Run, e.Policy, e.Time = l.Run, l.Spec.Policy, time.Now()
	l.Progress(e)
}

// configure leaves the spec for the other nodes.
func (l *Leader) configure(ctx context.Context) error {
	blob, err := l.Spec.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Spec.Join)
	defer cancel()
	return withAdvice(l.Coordinator.Configure(ctx, l.Run, blob))
}

// forget removes the spec, and waits until the other nodes have left: they learn by
// the coordinator how the run ended. Where it ended badly, that is not for long.
func (l *Leader) forget(ctx context.Context, well bool) error {
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), failTimeout)
	defer cancel()
	if err := l.Coordinator.Forget(soon, l.Run); err != nil {
		return err
	}
	timeout := failTimeout
	if well {
		timeout = leaveTimeout
	}
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	return l.Coordinator.Drain(ctx, l.Run)
}

// run starts the other nodes, or waits for them, and runs this node.
func (l *Leader) run(ctx context.Context, nw tcp.Network, begin time.Time, loaded task.Task, procs *children) (*Result, error) {
	at := l.Coordinator.Contact()
	if len(l.Command) == 0 {
		l.call(at)
	} else {
		for range l.Spec.Nodes - 1 {
			if err := procs.start(l.command(at), TokenEnv+"="+at.Token); err != nil {
				return nil, err
			}
		}
	}
	return remote(ctx, &l.Spec, &l.NodeConfig, l.Coordinator, nw, l.Run, begin, loaded)
}

// call emits that the other nodes can come.
func (l *Leader) call(at coord.Contact) {
	if !l.NewToken {
		at.Token = ""
	}
	l.emit(Event{Waiting: &Waiting{Endpoints: at.Endpoints, Token: at.Token, Nodes: l.Spec.Nodes - 1}})
}

// command is the command line of another node on this machine.
func (l *Leader) command(at coord.Contact) []string {
	c := append([]string(nil), l.Command...)
	c = append(c, "--quiet", "--etcd", strings.Join(at.Endpoints, ","), "--run", l.Run, "--leader", strconv.Itoa(os.Getpid()))
	if l.Workers > 0 {
		c = append(c, "--workers", strconv.Itoa(l.Workers))
	}
	if l.Data != "" {
		c = append(c, "--data", l.Data)
	}
	if l.Profile != "" {
		c = append(c, "--profile", l.Profile)
	}
	if l.TLS != nil {
		c = append(c, "--tls-cert", l.TLS.Cert, "--tls-key", l.TLS.Key, "--tls-ca", l.TLS.CA)
		if l.TLS.Name != "" {
			c = append(c, "--tls-name", l.TLS.Name)
		}
	}
	return c
}
