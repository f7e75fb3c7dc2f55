package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

var (
	seed  = roomtest.Seed
	scale = flag.Int("scale", 1, "how many times as long the random tests run")
)

// often is how many times a random test does what it does n times by default: a fifth under the race detector, which takes up to
// thirty times as long, and looks at each access anyway.
func often(n int) int {
	if racing.Enabled {
		n /= 5
	}
	return max(1, n**scale)
}

// fewer are numbers of nodes with which a test is done: under the race detector only some of several, the most too.
func fewer(nodes ...int) []int {
	if !racing.Enabled {
		return nodes
	}
	return nodes[len(nodes)/2:]
}

func TestMain(m *testing.M) { roomtest.Main(m) }

// secret is that of connections without nodes.
var secret = []byte("what only members know")

// patience is how long a test waits for what must come.
const patience = roomtest.Patience

func local(t testing.TB, nodes int, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Local(ctx, nodes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, c) })
	return c
}

func closeAll(t testing.TB, c *Cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil && !t.Failed() {
		t.Error(err)
	}
}

// places makes the network and the listener of node i.
type places func(i int) (transport.Network, transport.Listener, error)

// overTCP has nodes talk over sockets of this machine.
func overTCP(int) (transport.Network, transport.Listener, error) {
	l, err := tcp.Network{}.Listen("127.0.0.1:0")
	return tcp.Network{}, l, err
}

// clusterOver starts nodes over other networks than memory.
func clusterOver(t testing.TB, nodes int, cfg Config, place places) *Cluster {
	t.Helper()
	return clusterOf(t, nodes, cfg, place, coord.Config{TTL: patience}, func(s coord.Session) coord.Session { return s })
}

// clusterOf is clusterOver of a run whose sessions are wrapped.
func clusterOf(t testing.TB, nodes int, cfg Config, place places, run coord.Config, wrap func(coord.Session) coord.Session) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run.Run, run.Nodes = "test", nodes
	hub, err := cmem.New(run)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Nodes: make([]*Node, nodes), Hub: hub}
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			cfg := cfg
			cfg.Run = "test"
			if cfg.Network, cfg.Listener, errs[i] = place(i); errs[i] != nil {
				return
			}
			defer cfg.Listener.Close()
			if cfg.Session, errs[i] = hub.Join(ctx, cfg.Listener.Addr()); errs[i] != nil {
				return
			}
			cfg.Session = wrap(cfg.Session)
			c.Nodes[cfg.Session.Self()], errs[i] = Start(ctx, cfg)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, c) })
	return c
}

// each runs a program on every worker of every node.
func each(t testing.TB, c *Cluster, program func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience*time.Duration(*scale))
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range c.Nodes {
		for _, w := range n.Workers() {
			wg.Go(func() {
				id := w.ID()
				if err := program(ctx, w, rngOf(id)); err != nil {
					t.Errorf("-seed %d: %v: %v", *seed, id, err)
					cancel()
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func rngOf(id godwit.WorkerID) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(id.Node)<<16|uint64(id.Local)))
}

func sum(c *Cluster) (s Stats) {
	for _, n := range c.Nodes {
		s.Add(n.Stats())
	}
	return s
}

// everywhere makes all that was pushed visible everywhere.
func everywhere(ctx context.Context, w godwit.Worker) error {
	if err := w.WaitSync(ctx); err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	return w.WaitSync(ctx)
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	roomtest.Eventually(t, what, ok)
}

// model returns a model of one table of rows of dim zeros.
func model(t testing.TB, rows uint64, dim int) *godwit.Model {
	t.Helper()
	return modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: dim})
}

func modelOf(t testing.TB, tables ...godwit.Table) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// place returns where a node would serve a read of a key at this moment.
func (n *Node) place(k godwit.Key) protocol.Place {
	a := n.rows.Access()
	p, _ := a.Read(n.rows.Table(k), k, make([]float32, n.cfg.Model.Dim(k)))
	return p
}

// homedAt returns want keys with their home at a node.
func homedAt(t testing.TB, n *Node, home godwit.NodeID, want int) []godwit.Key {
	t.Helper()
	var keys []godwit.Key
	for k := godwit.Key(0); n.cfg.Model.Has(k) && len(keys) < want; k++ {
		if n.proto.Homes.Home(k) == home {
			keys = append(keys, k)
		}
	}
	if len(keys) < want {
		t.Fatalf("%d of %d keys have their home at node %d, the test needs %d", len(keys), n.cfg.Model.Keys(), home, want)
	}
	return keys
}

// background returns a context for the plain calls of a test.
func background(t testing.TB) context.Context { return roomtest.Background(t) }

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	roomtest.Must(t, err)
}

// noLeak checks that a function leaves no goroutine behind.
func noLeak(t *testing.T, f func()) {
	t.Helper()
	before := runtime.NumGoroutine()
	f()
	end := time.Now().Add(patience / 4)
	for runtime.NumGoroutine() > before && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

// variants runs a test for every policy, number of nodes, with location hints
// and without.
func variants(t *testing.T, nodes []int, test func(t *testing.T, nodes int, cfg Config)) {
	variantsOf(t, placement.Names(), nodes, test)
}

// variantsOf is variants of some policies.
func variantsOf(t *testing.T, policies []string, nodes []int, test func(t *testing.T, nodes int, cfg Config)) {
	for _, name := range policies {
		p, err := placement.ByName(name)
		must(t, err)
		for _, n := range nodes {
			for _, noHints := range []bool{false, true} {
				if n == 1 && noHints {
					continue
				}
				t.Run(fmt.Sprintf("%s/nodes=%d/hints=%v", name, n, !noHints), func(t *testing.T) {
					test(t, n, Config{Policy: p, NoHints: noHints, Workers: 2})
				})
			}
		}
	}
}

// first makes row 0 hot for the policy that asks for that.
func first(row uint64) float64 {
	if row == 0 {
		return 1e6
	}
	return 1
}

// A tally sums the stats of the variants of a test by policy, to see that the
// test did meet what it is about.
type tally map[string]*Stats

func (y tally) add(t *testing.T, c *Cluster, p placement.Policy) {
	if y[p.Name()] == nil {
		y[p.Name()] = &Stats{}
	}
	s := sum(c)
	y[p.Name()].Add(s)
	t.Logf("%.3f of %d accesses without a message, %d queued; %d moves, %d copies, %d drops, %d forwards, %d hops",
		s.NoMessage(), s.Accesses(), s.Queued, s.Moves, s.Copies, s.Drops, s.Forwards, s.MaxHops)
}

// check fails if a policy did not do what it is there for.
func (y tally) check(t *testing.T, oneKey bool) {
	if t.Failed() {
		return
	}
	for name, what := range y.missed(oneKey) {
		t.Errorf("%s: %sthe test is vacuous", name, what)
	}
}

// missed says by policy what it did not do that it is there for. A test on one key
// has replicas that come and go by chance only.
func (y tally) missed(oneKey bool) (what map[string]string) {
	what = map[string]string{}
	for name, s := range y {
		miss := func(format string, args ...any) { what[name] += fmt.Sprintf(format, args...) }
		moves, copies, drops := false, false, false
		switch name {
		case "relocate", "adaptive-move-only":
			moves = true
		case "replicate":
			copies = true
		case "nonuniform":
			moves = true
		case "adaptive": // whose replicas are idle instead of being dropped
			moves, copies = true, true
		case "adapm":
			moves, copies, drops = true, true, true
		case "adaptive-replicate-only", "stale":
			copies, drops = true, true
		}
		if moves && (s.Moves == 0 || s.Queued == 0 || s.Forwards == 0) {
			miss("%d moves, %d accesses that waited, %d forwards; ", s.Moves, s.Queued, s.Forwards)
		}
		if copies && (s.Copies == 0 || s.Replica == 0) {
			miss("%d copies, %d accesses to replicas; ", s.Copies, s.Replica)
		}
		if drops && s.Drops == 0 && !oneKey {
			miss("no drops; ")
		}
		if s.Remote == 0 && name != "replicate" {
			miss("no remote accesses; ")
		}
	}
	return what
}
