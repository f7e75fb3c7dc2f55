package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// Cluster is how a job is to be run, as flags say it.
type cluster struct {
	node       job.NodeConfig
	run        string
	etcd       []string
	etcdListen string
	token      string // of the environment
	await      bool
	restarts   int
	tls        tcp.TLSFiles
	watching   watching
}

func (c *cluster) flags(spec *job.Spec) Group {
	g := NewGroup("Nodes")
	g.IntVarP(&spec.Nodes, "nodes", "n", spec.Nodes, "`number` of nodes; further ones are started as processes here, see --await")
	g.IntVarP(&spec.Workers, "workers", "w", 0, "`number` of workers of each node (default: the cores, shared by the nodes of this machine)")
	g.StringVar(&spec.Policy, "policy", spec.Policy, "who holds which parameter, see below: `name`")
	g.TextVar(&spec.Staleness, "staleness", spec.Staleness, "how many `steps` a worker may read ahead of the slowest one: 0 is bulk-synchronous, \"eventual\" does not wait")
	g.StringVar(&spec.Filters, "filters", "", "what messages may lose on their way, see below: `list`, such as \"fixed(bytes=2), sparse, s2\"")
	g.BoolVar(&c.await, "await", false, "start this node only, and wait for the others to come from other machines")
	g.StringVar(&c.node.Listen, "listen", "", "`host:port` at which other nodes reach this one (default: with --await, this machine's address; else loopback)")
	g.StringVar(&c.node.Advertise, "advertise", "", "`host` or host:port by which they reach it, if that is another one")
	g.StringSliceVar(&c.etcd, "etcd", nil, "`addresses` (host:port, by commas) of an etcd to coordinate by (default: one is started within this process)")
	g.StringVar(&c.etcdListen, "etcd-listen", "", "`host:port` of the etcd within this process (default: any port, with --await of the address of --listen or else of this machine's, without it of loopback)")
	g.StringVar(&c.run, "run", "", "`name` of the run at etcd (default: one that is new)")
	g.DurationVar(&spec.TTL, "ttl", spec.TTL, "how long without a sign of life until a node counts as lost, at least 1s")
	g.DurationVar(&spec.Join, "join", spec.Join, "how long to wait until all nodes are there, and then until they are connected, beside several times what loading the data takes")
	return g
}

// prepare fills in what follows from the rest.
func (c *cluster) prepare(spec *job.Spec) error {
	var err error
	if c.node.TLS, err = TLSOf(&c.tls); err != nil {
		return err
	}
	if err := c.watching.check(); err != nil {
		return err
	}
	if err := c.node.Check(); err != nil {
		return err
	}
	if bad := (*setting.Error)(nil); c.run != "" && errors.As(coord.CheckRun(c.run), &bad) {
		return fmt.Errorf("--run %s: want %s", bad.Got, bad.Want)
	}
	if of, n := trace.Restarts(c.run); n > 0 {
		return fmt.Errorf("--run %s: so is called what a run %s does after it was restarted, and its records would be taken for those of that: choose another name", c.run, of)
	}
	c.watching.spread = !c.await
	c.token = os.Getenv(job.TokenEnv)
	check := server.CheckToken
	if len(c.etcd) > 0 {
		check = etcd.CheckToken
	}
	if err := check(c.token); spec.Nodes > 1 && c.token != "" && err != nil {
		return fmt.Errorf("%s: %w", job.TokenEnv, err)
	}
	if c.run == "" {
		c.run = spec.Task.Name() + "-" + suffix()
	}
	if spec.Workers == 0 && !c.await {
		spec.Workers = max(1, runtime.GOMAXPROCS(0)/max(1, spec.Nodes))
	}
	if !c.await {
		return nil
	}
	if spec.Nodes < 2 {
		return fmt.Errorf("--await waits for other nodes: say how many there are in all, with --nodes")
	}
	return c.listen()
}

// listen fills in where a node that waits for others listens, and where the etcd within its process does.
func (c *cluster) listen() error {
	host, ok := hostOf(c.node.Listen)
	if c.node.Listen == "" || c.etcdListen == "" && !ok {
		var err error
		if host, err = job.OwnAddress(); err != nil {
			return err
		}
	}
	if c.etcdListen == "" {
		c.etcdListen = net.JoinHostPort(host, "0")
	}
	if c.node.Listen == "" {
		c.node.Listen = net.JoinHostPort(host, "0")
	}
	return nil
}

// hostOf returns the host of host:port if the etcd within this process can listen there and others can reach
// it: one address, or localhost. etcd listens at no other names.
func hostOf(listen string) (host string, ok bool) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", false // whoever listens there says so
	}
	ip := net.ParseIP(host)
	return host, host == "localhost" || ip != nil && !ip.IsUnspecified()
}

// ignored refuses flags that have no effect, where somebody may believe that they
// have one: that a connection is secured, or where this node listens.
func (c *cluster) ignored(cmd *cobra.Command, spec *job.Spec) error {
	connections := []string{"listen", "advertise", "etcd", "etcd-listen", "tls-cert", "tls-key", "tls-ca", "tls-name"}
	for _, name := range connections {
		if spec.Nodes == 1 && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s has no effect: one node has no connections; leave it out, or say with --nodes how many there are", name)
		}
	}
	for _, x := range []struct {
		flag string
		idle bool
		why  string
	}{
		{"etcd-listen", len(c.etcd) > 0, "it is for an etcd within this process, and --etcd names another one; leave one of them out"},
		{"filters", spec.Nodes == 1, "one node sends nothing to others; leave it out, or say with --nodes how many there are"},
		{"policy", cmd.Flags().Changed("policies"), "--policies says which policies are run; leave one of them out"},
		{"keep", c.place(spec) == "", "there are no checkpoints; leave it out, or say where they are to be (--checkpoint)"},
		{"restarts", c.place(spec) == "", "a run goes on from its checkpoints, and there are none; leave it out, or say where they are to be (--checkpoint)"},
		{"restarts", spec.Nodes == 1, "one node that is lost leaves nobody who goes on; leave it out"},
		{"restarts", c.await, "with --await, who began the run goes on with it (--resume); leave it out"},
	} {
		if x.idle && cmd.Flags().Changed(x.flag) {
			return fmt.Errorf("--%s has no effect: %s", x.flag, x.why)
		}
	}
	return nil
}

func suffix() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// once runs the job, without beginning again where a node is lost.
func (c *cluster) once(ctx context.Context, spec job.Spec, p *printer) (*job.Result, error) {
	c.node.Progress, c.node.Tick = p.event, p.tick()
	c.watching.attend(&c.node, p.listening)
	if spec.Nodes == 1 {
		return job.Local(ctx, c.run, spec, c.node)
	}
	p.join = c.joinCommand
	r, err := c.lead(ctx, spec)
	p.clear()
	return r, err
}

// lead runs a job of several nodes with this process as the first of them.
func (c *cluster) lead(ctx context.Context, spec job.Spec) (*job.Result, error) {
	t, err := c.node.TLS.Config()
	if err != nil {
		return nil, err
	}
	l := job.Leader{NodeConfig: c.node, Spec: spec, Run: c.run}
	if !c.await {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		l.Command = append([]string{self, "node"}, c.watching.command()...)
	}
	if len(c.etcd) > 0 {
		l.Coordinator = etcd.Access{Endpoints: c.etcd, TLS: t, Token: c.token}
		return job.Lead(ctx, l)
	}
	if err := spec.Check(); err != nil {
		return nil, err // a server that nobody needs is not started
	}
	s, err := server.Start(ctx, server.Config{Listen: c.etcdListen, TLS: serverFiles(c.node.TLS), Token: c.token, Log: logger.Load()})
	if err != nil {
		return nil, err
	}
	l.Coordinator, l.NewToken = etcd.Access{Endpoints: s.Endpoints(), TLS: t, Token: s.Token()}, c.token == ""
	r, err := job.Lead(ctx, l)
	if cerr := s.Close(); err == nil && cerr != nil {
		return nil, cerr
	}
	return r, err
}

// joinCommand is what has to be run on another machine.
func (c *cluster) joinCommand(e job.Event) string {
	s := fmt.Sprintf("%s node --etcd %s --run %s", program(), Argument(strings.Join(e.Waiting.Endpoints, ",")), e.Run)
	switch {
	case e.Waiting.Token != "":
		s = job.TokenEnv + "=" + e.Waiting.Token + " " + s
	case c.token != "": // whoever set it decides where it is shown
		s = job.TokenEnv + "=TOKEN " + s
	}
	if c.node.TLS != nil {
		s += " --tls-cert CERT --tls-key KEY --tls-ca CA"
		if c.node.TLS.Name != "" {
			s += " --tls-name " + Argument(c.node.TLS.Name)
		}
	}
	return s
}

// OnProcesses runs a job whose nodes are this process and others of the same program
// that it starts: the program has the command "node".
func OnProcesses(ctx context.Context, spec job.Spec, stop <-chan struct{}, tell func(job.Event)) (*job.Result, error) {
	c := &cluster{node: job.NodeConfig{Stop: stop, Progress: tell}, run: spec.Task.Name() + "-" + suffix()}
	if spec.Nodes == 1 {
		return job.Local(ctx, c.run, spec, c.node)
	}
	return c.lead(ctx, spec)
}
