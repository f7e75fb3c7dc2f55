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
	"github.com/godwit-ps/godwit/internal/host"
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
		names = append(names, fmt.Sprintf("%d (%s)", id, c.Nodes[0].addr(id)))
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

// Time in which this process did not run does not count.
func TestAPauseOfANodeIsNotItsPeers(t *testing.T) {
	n := quietNode(t, Config{Model: model(t, 100, 2), Workers: 1, Session: lonely{nodes: 3}})
	p := n.pulse
	w := &stoppedWorld{World: n.World, now: 1}
	n.Host.World = w
	p.seen = 1
	sent(n.links.To(1), 1000) // and nothing comes back
	p.links[1].met = true
	p.step()
	for range 5 {
		w.now += int64(coord.DefaultTTL) // stopped
		if p.step(); p.links[1].suspected {
			t.Fatalf("after %v a peer is suspect", p.clock)
		}
	}
	for i := 0; !p.links[1].suspected; i++ {
		if w.now += int64(pulseEvery); p.clock > coord.DefaultTTL+answerTime+pulseEvery {
			t.Fatalf("after %v a peer that does not answer is not suspect", p.clock)
		}
		p.step()
	}
	if p.clock < coord.DefaultTTL {
		t.Errorf("a peer is suspect after %v", p.clock)
	}
	if p.links[2].suspected {
		t.Error("so is one that owes nothing")
	}
}

type stoppedWorld struct {
	host.World
	now int64
}

func (w *stoppedWorld) Now() int64 { return w.now }

func TestAVerdictNamesWhoIsInAllPairs(t *testing.T) {
	members := lonely{nodes: 30}.Members()
	for i := range members {
		members[i].Addr = "x"
	}
	var star []rift
	for i := godwit.NodeID(1); i < 30; i++ {
		star = append(star, riftOf(i, 0))
	}
	for _, x := range []struct {
		pairs []rift
		says  string
	}{
		{[]rift{{1, 2}}, "nodes 1 (x) and 2 (x) do not reach each other"},
		{[]rift{{5, 7}, {2, 7}, {7, 9}}, "node 7 (x) reaches none of the nodes 2 (x), 5 (x), 9 (x)"},
		{[]rift{{5, 7}, {5, 6}}, "node 5 (x) reaches none of the nodes 6 (x), 7 (x)"},
		{[]rift{{3, 4}, {1, 2}}, "nodes 1 (x) and 2 (x), 3 (x) and 4 (x) do not reach each other"},
		{[]rift{{1, 2}, {1, 3}, {2, 3}}, "nodes 1 (x) and 2 (x), 1 (x) and 3 (x), 2 (x) and 3 (x) do not reach each other"},
		{star, "node 0 (x) reaches none of the nodes 1 (x), 2 (x), 3 (x), 4 (x), 5 (x), 6 (x), 7 (x), 8 (x), 9 (x), 10 (x), 19 more"},
	} {
		if got := verdictOf(x.pairs, members, lease).Text; !strings.HasPrefix(got, x.says+": nothing moved for 2s") {
			t.Errorf("%v: %s, want %s", x.pairs, got, x.says)
		}
	}
}

// second is a session of node 1.
type second struct{ lonely }

func (second) Self() godwit.NodeID { return 1 }

// pulseOf returns the pulse of a node that hears from nobody, and what lets time
// pass.
func pulseOf(t *testing.T, s coord.Session) (*pulse, func(time.Duration)) {
	n := quietNode(t, Config{Model: model(t, 100, 2), Workers: 1, Session: s})
	n.self = s.Self()
	w := &stoppedWorld{World: n.World, now: 1}
	n.Host.World, n.pulse.seen = w, 1
	for i := range n.pulse.links {
		n.pulse.links[i].met = true
	}
	return n.pulse, func(d time.Duration) {
		for ; d > 0; d -= pulseEvery {
			w.now += int64(pulseEvery)
			n.pulse.step()
		}
	}
}

// What a peer says to have arrived is movement, though nothing else comes.
func TestAPeerThatTakesSlowlyIsNotSuspect(t *testing.T) {
	p, pass := pulseOf(t, lonely{nodes: 2})
	sent(p.n.links.To(1), 1<<20)
	for i := range uint64(10) {
		pass(coord.DefaultTTL / 2)
		must(t, p.beat(1, wire.Heartbeat{Arrived: i + 1}.Frame()))
	}
	if p.links[1].suspected {
		t.Error("a peer is suspect at which bytes arrive")
	}
	pass(coord.DefaultTTL + answerTime + 2*pulseEvery)
	if !p.links[1].suspected {
		t.Error("a peer is not suspect at which no bytes arrive any more")
	}
}

// The judge hears others before it judges, and who hears no verdict gives one.
// Those of whom a node is nearly sure are named too.
func TestAVerdictWaitsForWhatOthersSuspect(t *testing.T) {
	for _, x := range []struct {
		s    coord.Session
		wait time.Duration
		says string
	}{
		{lonely{nodes: 4}, judgeWait, "node 2 (?) reaches none of the nodes 0 (?), 1 (?), 3 (?)"},
		{second{lonely{nodes: 4}}, appealWait, "node 1 (?) reaches none of the nodes 2 (?), 3 (?)"},
	} {
		p, pass := pulseOf(t, x.s)
		self := p.n.self
		for i := range p.links {
			if id := godwit.NodeID(i); id != self && id != 2 {
				p.links[i].heard = time.Hour // no need to ask
			}
		}
		sent(p.n.links.To(2), 100)
		if self == 1 {
			pass(coord.DefaultTTL / 3)
			sent(p.n.links.To(3), 100)
			pass(coord.DefaultTTL/3*2 + answerTime + 2*pulseEvery)
		} else {
			pass(coord.DefaultTTL + answerTime + 2*pulseEvery)
		}
		if v := p.due(); v != nil {
			t.Errorf("node %d judges at once that %s", self, v.Text)
		}
		if self == judge {
			must(t, p.accused(1, wire.Suspicions([]godwit.NodeID{2})))
			must(t, p.accused(3, wire.Suspicions([]godwit.NodeID{2})))
		}
		pass(x.wait - pulseEvery)
		if v := p.due(); x.wait > pulseEvery && v != nil {
			t.Errorf("node %d judges too early that %s", self, v.Text)
		}
		pass(2 * pulseEvery)
		if v := p.due(); v == nil || !strings.HasPrefix(v.Text, x.says+":") {
			t.Errorf("node %d judges %v, want that %s", self, v, x.says)
		}
	}
}
