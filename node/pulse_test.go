package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A maze is a network of sockets whose connections go through a proxy each, which
// can hold up what it passes on, as a black hole does, or be slow.
type maze struct {
	t     testing.TB
	pause atomic.Int64 // nanoseconds after each 64 KiB
	mu    sync.Mutex
	ways  map[[2]godwit.NodeID]*atomic.Bool // from one node to another: cut
	work  sync.WaitGroup
	end   chan struct{}
}

func newMaze(t testing.TB) *maze {
	m := &maze{t: t, ways: map[[2]godwit.NodeID]*atomic.Bool{}, end: make(chan struct{})}
	t.Cleanup(func() { close(m.end); m.work.Wait() })
	return m
}

func (m *maze) place(int) (transport.Network, transport.Listener, error) {
	l, err := tcp.Network{}.Listen("127.0.0.1:0")
	return mazeNet{m}, l, err
}

// way is whether what one node sends to another is held up.
func (m *maze) way(from, to godwit.NodeID) *atomic.Bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.ways[[2]godwit.NodeID{from, to}]
	if w == nil {
		w = &atomic.Bool{}
		m.ways[[2]godwit.NodeID{from, to}] = w
	}
	return w
}

func (m *maze) cut(a, b godwit.NodeID, is bool) {
	m.way(a, b).Store(is)
	m.way(b, a).Store(is)
}

type mazeNet struct{ m *maze }

func (n mazeNet) Listen(addr string) (transport.Listener, error) { panic("not used") }

func (n mazeNet) Dial(ctx context.Context, addr string, hello wire.Hello, secret []byte) (transport.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	n.m.work.Go(func() {
		here, err := l.Accept()
		if err != nil {
			return
		}
		defer here.Close()
		there, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer there.Close()
		over := make(chan struct{}, 2)
		n.m.work.Go(func() { n.m.pass(there, here, n.m.way(hello.From, hello.To)); over <- struct{}{} })
		n.m.work.Go(func() { n.m.pass(here, there, n.m.way(hello.To, hello.From)); over <- struct{}{} })
		select {
		case <-over:
		case <-n.m.end:
		}
	})
	return tcp.Network{}.Dial(ctx, l.Addr().String(), hello, secret)
}

// pass copies what comes until the connection ends.
func (m *maze) pass(to, from net.Conn, cut *atomic.Bool) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		for cut.Load() {
			select {
			case <-m.end:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		time.Sleep(time.Duration(m.pause.Load()))
		if _, e := to.Write(buf[:n]); err != nil || e != nil {
			return
		}
	}
}

// lease is short, for tests that wait for it to pass.
const lease = 2 * time.Second

// together starts three nodes in a maze whose workers push keys of all nodes until
// the run ends. It returns the nodes and what waits for that.
func together(t *testing.T, m *maze) (c *Cluster, end func() []error) {
	c = clusterOf(t, 3, Config{Model: model(t, 100, 2), Policy: placement.Static, Workers: 2}, m.place, coord.Config{TTL: lease}, func(s coord.Session) coord.Session { return s })
	ctx := background(t)
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		for j, w := range n.Workers() {
			keys := make([]godwit.Key, 100)
			for k := range keys {
				keys[k] = godwit.Key(k)
			}
			wg.Go(func() {
				var err error
				for err == nil {
					err = w.Push(ctx, keys, make([]float32, 200))
					w.Advance()
				}
				if j == 0 {
					errs[i] = err
				}
			})
		}
	}
	return c, func() []error { wg.Wait(); return errs }
}

// named returns what is wrong with an error that should be a verdict on nodes.
func named(err error, c *Cluster, format string, nodes ...godwit.NodeID) error {
	var names []any
	for _, id := range nodes {
		names = append(names, fmt.Sprintf("%d (%s)", id, c.Nodes[0].cfg.Session.Members()[id].Addr))
	}
	text := fmt.Sprintf(format, names...)
	if !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(fmt.Sprint(err), text) {
		return fmt.Errorf("ended with %v, want that %s", err, text)
	}
	return nil
}

func TestNodesThatDoNotReachEachOtherAreNamedByAVerdict(t *testing.T) {
	const pair = "nodes %s and %s do not reach each other"
	const alone = "%s" // with one node or more, by who was owed something at that time
	for what, x := range map[string]struct {
		cuts  [][2]godwit.NodeID // from, to
		says  string
		nodes []godwit.NodeID
	}{
		"two followers":            {[][2]godwit.NodeID{{1, 2}, {2, 1}}, pair, []godwit.NodeID{1, 2}},
		"one way":                  {[][2]godwit.NodeID{{2, 1}}, pair, []godwit.NodeID{1, 2}},
		"the leader, a follower":   {[][2]godwit.NodeID{{0, 1}, {1, 0}}, pair, []godwit.NodeID{0, 1}},
		"a node of all":            {[][2]godwit.NodeID{{0, 2}, {2, 0}, {1, 2}, {2, 1}}, alone, []godwit.NodeID{2}},
		"a node that says nothing": {[][2]godwit.NodeID{{2, 0}, {2, 1}}, alone, []godwit.NodeID{2}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMaze(t)
			c, end := together(t, m)
			time.Sleep(lease / 4)
			for _, x := range x.cuts {
				m.way(x[0], x[1]).Store(true)
			}
			began := time.Now()
			errs := end()
			t.Logf("all operations ended after %v, the lease is %v", time.Since(began), lease)
			for i, err := range errs {
				if e := named(err, c, x.says, x.nodes...); e != nil {
					t.Errorf("node %d: %v", i, e)
				}
			}
			if took := time.Since(began); took < lease {
				t.Errorf("the verdict came after %v, within the lease of %v", took, lease)
			}
		})
	}
}

// What moves again before the lease is over, and frames that take longer than the
// lease to arrive, end no run.
func TestAConnectionOnWhichSomethingMovesIsNotSuspect(t *testing.T) {
	t.Run("cut for a while", func(t *testing.T) {
		t.Parallel()
		m := newMaze(t)
		c, end := together(t, m)
		for range 3 {
			time.Sleep(lease / 4)
			m.cut(1, 2, true)
			time.Sleep(lease / 2)
			m.cut(1, 2, false)
		}
		if err := c.Nodes[1].Err(); err != nil {
			t.Errorf("the run ended with %v", err)
		}
		closeAll(t, c)
		end()
	})
	t.Run("a long frame", func(t *testing.T) {
		t.Parallel()
		m := newMaze(t)
		const dim = 1 << 20
		c := clusterOf(t, 2, Config{Model: model(t, 2, dim), Policy: placement.Static, Workers: 1}, m.place, coord.Config{TTL: lease}, func(s coord.Session) coord.Session { return s })
		m.pause.Store(int64(3 * lease / (4 * dim / (64 << 10))))
		began := time.Now()
		must(t, c.Nodes[0].Worker(0).Push(background(t), homedAt(t, c.Nodes[0], 1, 1), make([]float32, dim)))
		if took := time.Since(began); took < 2*lease {
			t.Errorf("the push took %v: the test is vacuous", took)
		}
		m.pause.Store(0)
	})
}
