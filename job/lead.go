package job

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/train/task"
)

// A Leader is the first node of a run of several nodes, as [Lead] starts it.
type Leader struct {
	Place
	Spec Spec
	// Run is the name of the run.
	Run string
	// Etcd holds the endpoints, host:port, of an etcd to coordinate by. Empty:
	// one is started in this process, which serves at EtcdListen.
	Etcd []string
	// Token is what lets nodes in at etcd: for Etcd, user:password where it has
	// users; for the one in this process, what the other nodes must give (empty: a
	// new one). Processes that Lead starts get it in their environment, as TokenEnv.
	Token string
	// EtcdListen is the host:port of the etcd in this process; empty is any
	// port of loopback.
	EtcdListen string
	// Await says that the other nodes are started by somebody else, with Join
	// ("godwit node"). Else Lead starts them as processes.
	Await bool
	// Command is what runs a node of the same program, such as "godwit node": the
	// program and what comes before its flags. The flags are --quiet, --etcd, --run
	// and --leader with the number of this process; and --workers, --data, --profile
	// and --tls-cert, --tls-key, --tls-ca, --tls-name where they are set here. The
	// command of package job/cli takes them. The token is in the environment, as
	// TokenEnv. Stdin ends when this process does ([Joiner].LeaderGone).
	Command []string
	// Stderr gets what the other processes say, with their name before each
	// line; nil is os.Stderr.
	Stderr io.Writer

	made string // the token, if nobody knows it but this process
}

// TokenEnv is the environment variable by which a process gets the token of its run.
// Unlike a command line, it is not shown to other users of the machine.
const TokenEnv = "GODWIT_TOKEN"

// CheckToken says what is wrong with a token, for an etcd of others or the one that
// a run starts; empty is a valid one.
func CheckToken(token string, others bool) error {
	check := etcd.CheckOwnToken
	if others {
		check = etcd.CheckToken
	}
	if err := check(token); token != "" && err != nil {
		return fmt.Errorf("%s: %w", TokenEnv, err)
	}
	return nil
}

// How long Lead waits for the other processes: when the run ended well, and when
// it failed, for what they have to say about it.
const (
	leavePatience = 10 * time.Second
	failPatience  = 2 * time.Second
)

// Lead runs a job of several nodes with this process as the first of them.
func Lead(ctx context.Context, l Leader) (*Result, error) {
	begin := time.Now()
	if l.Stderr == nil {
		l.Stderr = os.Stderr
	}
	t, err := l.TLS.config()
	if err != nil {
		return nil, err
	}
	if err := registered(&l.Spec); err != nil {
		return nil, err
	}
	loaded, err := l.Spec.load(&l.Place)
	if err != nil {
		return nil, err
	}
	l.Spec.Join = patience(&l.Spec, time.Since(begin))
	if len(l.Etcd) > 0 {
		return l.lead(ctx, l.access(t), begin, loaded)
	}
	server, err := etcd.StartEmbedded(ctx, etcd.EmbeddedConfig{ClientAddr: l.EtcdListen, TLS: l.TLS.etcd(), Token: l.Token})
	if err != nil {
		return nil, err
	}
	if l.Token == "" {
		l.made = server.Access().Token
	}
	l.Etcd, l.Token = server.Access().Endpoints, server.Access().Token
	r, err := l.lead(ctx, l.access(t), begin, loaded)
	// The server is the last to go: the others learn by it how the run ended,
	// and leave.
	derr := l.drain(ctx, server, err == nil)
	if cerr := server.Close(); err == nil {
		err = errors.Join(derr, cerr)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// registered says whether the other nodes cannot know what the spec has trained.
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

// access is the way to the run's etcd.
func (l *Leader) access(t *tls.Config) etcd.Access {
	return etcd.Access{Endpoints: l.Etcd, TLS: t, Token: l.Token}
}

// patience is how long nodes wait for each other where loading the data took a
// while here: the others are about to do the same, perhaps all on one machine, or
// on slower ones.
func patience(s *Spec, loading time.Duration) time.Duration {
	return s.Join + time.Duration(max(4, s.Nodes))*loading
}

func (l *Leader) drain(ctx context.Context, server *etcd.Embedded, well bool) error {
	patience := failPatience
	if well {
		patience = leavePatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return server.Drain(ctx, l.Run)
}

// lead runs the job by an etcd that is there, with the processes it needs.
func (l *Leader) lead(ctx context.Context, at etcd.Access, begin time.Time, loaded task.Task) (*Result, error) {
	if err := l.configure(ctx, at); err != nil {
		return nil, err
	}
	kids := newChildren(l.Stderr)
	// Who ends the context is in a hurry, and may not wait for what follows.
	defer context.AfterFunc(ctx, kids.kill)()
	work, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-kids.broke:
			// If the run has begun, its nodes find out and say it better.
			select {
			case <-time.After(failPatience):
				cancel(kids.err)
			case <-work.Done():
			}
		case <-work.Done():
		}
	})
	r, err := l.run(work, at, begin, loaded, kids)
	patience := failPatience
	switch {
	case err == nil:
		patience = leavePatience
	case work.Err() != nil:
		err, patience = context.Cause(work), 0
	}
	kerr := kids.end(patience)
	cancel(nil)
	watch.Wait()
	ferr := l.forget(ctx, at)
	switch {
	case err == nil && kerr != nil:
		return nil, kerr
	case err == nil && ferr != nil:
		return nil, ferr
	}
	return r, err
}

// configure leaves the spec for the other nodes.
func (l *Leader) configure(ctx context.Context, at etcd.Access) error {
	blob, err := l.Spec.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Spec.Join)
	defer cancel()
	return advised(etcd.Configure(ctx, at, l.Run, blob))
}

func (l *Leader) forget(ctx context.Context, at etcd.Access) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failPatience)
	defer cancel()
	return etcd.Forget(ctx, at, l.Run)
}

// run starts the other nodes, or waits for them, and plays this node's part.
func (l *Leader) run(ctx context.Context, at etcd.Access, begin time.Time, loaded task.Task, kids *children) (*Result, error) {
	if l.Await {
		if l.Progress != nil {
			l.Progress(Event{Run: l.Run, Policy: l.Spec.Policy, Time: time.Now(), Waiting: &Waiting{Endpoints: l.Etcd, Token: l.made, Nodes: l.Spec.Nodes - 1}})
		}
	} else {
		for range l.Spec.Nodes - 1 {
			if err := kids.start(l.command(), TokenEnv+"="+l.Token); err != nil {
				return nil, err
			}
		}
	}
	return remote(ctx, &l.Spec, &l.Place, at, l.Run, begin, loaded)
}

// command is the command line of another node on this machine.
func (l *Leader) command() []string {
	c := append([]string(nil), l.Command...)
	c = append(c, "--quiet", "--etcd", strings.Join(l.Etcd, ","), "--run", l.Run, "--leader", strconv.Itoa(os.Getpid()))
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
