package transporttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

func dialNobody(s *suite) {
	l := s.listen()
	s.must(l.Close())
	err := s.in("Dial", func() error { return (<-s.dial(l.Addr())).err })
	if err == nil || !strings.Contains(err.Error(), l.Addr()) {
		s.Errorf("error %v does not name the address %s", err, l.Addr())
	}
}

func dialSilentContext(s *suite) {
	l := s.listen()
	ctx, cancel := context.WithTimeout(s.ctx, 30*time.Millisecond)
	defer cancel()
	err := s.in("Dial", func() error { _, err := s.Network.Dial(ctx, l.Addr(), hello(1), secret); return err })
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

func dialSilentPatience(s *suite) {
	l := s.listenAt(s.Hasty)
	start := time.Now()
	if err := s.in("Dial", func() error { return (<-s.dialOver(s.Hasty, l.Addr())).err }); err == nil {
		s.Error("connected to one who never accepted")
	}
	if took := time.Since(start); took > s.Timeout+limit/4 {
		s.Errorf("took %v, want about %v", took, s.Timeout)
	}
}

func acceptEnds(s *suite) {
	l := s.listen()
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx, hello(0), secret); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(s.ctx, hello(0), secret); accepted <- err }()
	time.Sleep(10 * time.Millisecond)
	s.must(l.Close())
	s.wantClosed("Accept", s.wait("Accept", accepted))
	s.must(l.Close())
}

func listenTwice(s *suite) {
	l := s.listen()
	if again, err := s.Network.Listen(l.Addr()); err == nil {
		again.Close()
		s.Errorf("two listen at %s", l.Addr())
	} else if !errors.Is(err, syscall.EADDRINUSE) {
		s.Errorf("error %v does not wrap %v", err, syscall.EADDRINUSE)
	}
	var err error
	for range 10 { // another program may be given the address meanwhile
		s.must(l.Close())
		var again transport.Listener
		if again, err = s.Network.Listen(l.Addr()); err == nil {
			s.must(again.Close())
			return
		}
		l = s.listen()
	}
	s.Errorf("an address that was given back is still in use: %v", err)
}

// rubbish is what strangers say.
var rubbish = []string{"", "G", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", strings.Repeat("\x00", 1000), "\x30\x00\x00\x00G\x01\x02\x00 cut"}

// knock has strangers of all kinds at the listener. The error is one of a machine
// that lets the listener lose its patience before.
func (s *suite) knock(addr string) (all []io.ReadWriteCloser, err error) {
	s.Helper()
	if s.Raw == nil {
		s.Skip("there is nothing below the frames")
	}
	for _, say := range rubbish {
		raw, err := s.Raw(addr)
		if err != nil {
			return nil, err
		}
		s.Cleanup(func() { raw.Close() })
		if _, err = io.WriteString(raw, say); err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

func strangers(s *suite) {
	l := s.listen()
	_, err := s.knock(l.Addr())
	s.must(err)
	dialed := s.dial(l.Addr())
	c, err := l.Accept(s.ctx, hello(0), secret) // those who say nothing could stay for longer than s.ctx
	s.must(err)
	defer c.Close()
	s.must((<-dialed).err)
}

func strangersDropped(s *suite) {
	s.again(limit, func() error {
		all, err := s.knock(s.listenAt(s.Hasty).Addr())
		if err != nil {
			return err
		}
		start := time.Now()
		for i, raw := range all {
			err := s.in("a stranger", func() error { _, err := io.Copy(io.Discard, raw); return err })
			if took := time.Since(start); took > s.Timeout+limit/4 {
				return fmt.Errorf("the stranger who said %.10q was dropped after %v (%v), want %v", rubbish[i], took, err, s.Timeout)
			}
		}
		return nil
	})
}

// meshed is what Mesh returned at one node.
type meshed struct {
	conns map[godwit.NodeID]transport.Conn
	err   error
}

// peersAt are nodes 0, 1 … at the listeners.
func peersAt(ls ...transport.Listener) []transport.Peer {
	var ps []transport.Peer
	for i, l := range ls {
		ps = append(ps, transport.Peer{ID: godwit.NodeID(i), Addr: l.Addr(), Incarnation: hello(0).Incarnation})
	}
	return ps
}

// An entry is how a node enters a mesh.
type entry struct {
	wire.Hello
	secret []byte
	peers  []transport.Peer
}

// mesh has n nodes join, with what edit makes of how they enter.
func (s *suite) mesh(n int, edit func(e *entry), before func(l transport.Listener)) []meshed {
	s.Helper()
	ls := make([]transport.Listener, n)
	for i := range ls {
		ls[i] = s.listen()
	}
	for _, l := range ls {
		if before != nil {
			before(l)
		}
	}
	type result struct {
		id int
		meshed
	}
	results := make(chan result, n)
	for i := range n {
		e := entry{hello(godwit.NodeID(i)), secret, peersAt(ls...)}
		if edit != nil {
			edit(&e)
		}
		delay := time.Duration(s.rand.IntN(30)) * time.Millisecond
		go func() {
			time.Sleep(delay)
			conns, err := transport.Mesh(s.ctx, s.Network, ls[i], e.Hello, e.secret, e.peers)
			results <- result{i, meshed{conns, err}}
		}()
	}
	out := make([]meshed, n)
	for range n {
		r := <-results
		out[r.id] = r.meshed
		for _, c := range r.conns {
			s.Cleanup(func() { c.Close() })
		}
	}
	return out
}

// meshWorks has every node write to every other and read from it.
func (s *suite) meshWorks(nodes []meshed) error {
	s.Helper()
	for id, m := range nodes {
		if m.err != nil {
			return m.err
		}
		if len(m.conns) != len(nodes)-1 {
			return fmt.Errorf("node %d has %d peers, want %d", id, len(m.conns), len(nodes)-1)
		}
		for peer, c := range m.conns {
			if c.Peer().From != peer {
				return fmt.Errorf("node %d has node %d as node %d", id, c.Peer().From, peer)
			}
			if err := send(c, []int{20}, uint64(1000*id)+uint64(peer)); err != nil {
				return err
			}
		}
	}
	for id, m := range nodes {
		for peer, c := range m.conns {
			if err := s.in("reading", func() error { return receive(c, []int{20}, 1000*uint64(peer)+uint64(id)) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func meshConnects(s *suite) { s.must(s.meshWorks(s.mesh(5, nil, nil))) }

// meshLate has a node that listens join only after its peer gave up to dial it
// once: what is left of that attempt must not be taken for the connection. It is
// tried again, since a machine that does not run a dialer for as long as it waits
// for an answer can have it give up one who has just accepted it.
func meshLate(s *suite) {
	s.again(limit/4, func() error {
		l0, l1 := s.listenAt(s.Hasty), s.listenAt(s.Hasty)
		peers := peersAt(l0, l1)
		first := make(chan meshed, 1)
		go func() {
			conns, err := transport.Mesh(s.ctx, s.Hasty, l1, hello(1), secret, peers)
			first <- meshed{conns, err}
		}()
		time.Sleep(s.Timeout * 5 / 4)
		conns, err := transport.Mesh(s.ctx, s.Hasty, l0, hello(0), secret, peers)
		nodes := []meshed{{conns, err}, <-first}
		for _, m := range nodes {
			for _, c := range m.conns {
				s.Cleanup(func() { c.Close() })
			}
		}
		return s.meshWorks(nodes)
	})
}

func meshWithStrangers(s *suite) {
	s.must(s.meshWorks(s.mesh(3, nil, func(l transport.Listener) {
		_, err := s.knock(l.Addr())
		s.must(err)
		// A node of another run, which wants to be node 2, waits too.
		go func() {
			h := hello(2)
			h.Run, h.To = "run-b", 0
			if c, err := s.Network.Dial(s.ctx, l.Addr(), h, secret); err == nil {
				c.Close()
			}
		}()
	})))
}

// lacks returns an error unless err contains all the words.
func lacks(node int, err error, words ...string) error {
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			return fmt.Errorf("node %d: error\n%v\ndoes not say %q", node, err, w)
		}
	}
	return nil
}

func meshWrongModel(s *suite) {
	var addr [2]string
	nodes := s.mesh(2, func(e *entry) {
		addr[0], addr[1] = e.peers[0].Addr, e.peers[1].Addr
		e.Fingerprint = fmt.Sprintf("model-%d", e.From)
	}, nil)
	for _, x := range nodes {
		var wrong *transport.Mismatch
		if !errors.As(x.err, &wrong) {
			s.Errorf("error %v wraps no *transport.Mismatch", x.err)
		}
	}
	s.must(lacks(0, nodes[0].err, "node 1 at "+addr[1]+" runs a different model or configuration (fingerprint model-1, here model-0)"))
	s.must(lacks(1, nodes[1].err, "node 0 at "+addr[0]+" runs a different model or configuration (fingerprint model-0, here model-1)"))
}

func meshWrongRun(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(2, func(e *entry) { e.Run = fmt.Sprintf("run-%d", e.From) }, nil)
		// Who was dialed by it need not be in the wrong, and waits for its own.
		return errors.Join(
			lacks(0, nodes[0].err, "node 1 at ", "did not connect", `a connection was dropped: one that says it is node 1 belongs to run "run-1", not to "run-0"`),
			lacks(1, nodes[1].err, "node 0 at ", `belongs to run "run-0", not to "run-1"`))
	})
}

func meshWrongAddress(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(3, func(e *entry) {
			if e.From == 2 {
				e.peers[0].Addr, e.peers[1].Addr = e.peers[1].Addr, e.peers[0].Addr
			}
		}, nil)
		if text := fmt.Sprint(nodes[2].err); !strings.Contains(text, "is node 1, not node 0") && !strings.Contains(text, "is node 0, not node 1") {
			return fmt.Errorf("node 2: error %v does not say who was found instead of whom", nodes[2].err)
		}
		return lacks(0, nodes[0].err, "node 2 at ", "did not connect")
	})
}

func meshMissing(s *suite) {
	s.again(hurry, func() error {
		l, gone := s.listen(), s.listen()
		s.must(gone.Close())
		peers := append(peersAt(gone, l), transport.Peer{ID: 2, Addr: "nowhere"})
		began := time.Now()
		_, err := transport.Mesh(s.ctx, s.Network, l, hello(1), secret, peers)
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error %v does not wrap %v", err, context.DeadlineExceeded)
		}
		var dial *transport.DialError
		if !errors.As(err, &dial) || dial.Addr != gone.Addr() {
			return fmt.Errorf("error %v wraps no *transport.DialError of %s", err, gone.Addr())
		}
		// Who cannot reach another says so while that one waits.
		if end, _ := s.ctx.Deadline(); time.Until(end) < end.Sub(began)/4 {
			return fmt.Errorf("it gave up %v before the end of %v", time.Until(end), end.Sub(began))
		}
		return lacks(1, err, "node 1 cannot reach node 0 at "+gone.Addr()+": ", "node 2 at nowhere did not connect to node 1 at "+l.Addr())
	})
}

// meshUnconfirmed has a peer that stops after it was accepted and before it has
// taken note of that, and another process of the same node in its place.
func meshUnconfirmed(s *suite) {
	l0, l1 := s.listen(), s.listen()
	first := make(chan meshed, 1)
	go func() {
		conns, err := transport.Mesh(s.ctx, s.Network, l0, hello(0), secret, peersAt(l0, l1))
		first <- meshed{conns, err}
	}()
	h := hello(1)
	h.To = 0
	for range 20 { // each gives up at another point
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(s.rand.IntN(2_000_000)))
		c, err := s.Network.Dial(ctx, l0.Addr(), h, secret)
		cancel()
		if err == nil { // it was in time: this is the connection
			s.Cleanup(func() { c.Close() })
			s.must(s.meshWorks([]meshed{<-first, {conns: map[godwit.NodeID]transport.Conn{0: c}}}))
			return
		}
		select {
		case m := <-first:
			s.Fatalf("the mesh returned %v, %v after a peer that gave up", m.conns, m.err)
		default:
		}
	}
	conns, err := transport.Mesh(s.ctx, s.Network, l1, hello(1), secret, peersAt(l0, l1))
	nodes := []meshed{<-first, {conns, err}}
	for _, m := range nodes {
		for _, c := range m.conns {
			s.Cleanup(func() { c.Close() })
		}
	}
	s.must(s.meshWorks(nodes))
}

func meshWrongIncarnation(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(2, func(e *entry) {
			if e.From == 1 {
				e.Incarnation = 8
			}
		}, nil)
		err := lacks(0, nodes[0].err, "node 1 at ", "is not the process that joined the run (incarnation 8, want 7)")
		for id, m := range nodes {
			for _, c := range m.conns {
				if _, rerr := c.ReadFrame(); rerr == nil {
					err = errors.Join(err, fmt.Errorf("node %d is connected to another process than the member", id))
				}
			}
		}
		return err
	})
	s.again(hurry, func() error {
		nodes := s.mesh(2, func(e *entry) {
			if e.From == 0 {
				e.Incarnation = 8
			}
		}, nil)
		return lacks(1, nodes[1].err, "node 0 at ", "is not the process that joined the run (incarnation 8, want 7)")
	})
}

func meshWrongSecret(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(3, func(e *entry) {
			if e.From == 1 {
				e.secret = []byte("what another run knows")
			}
			e.Fingerprint = "model-of-run-a"
			if e.From == 1 {
				e.Fingerprint = "another" // which would end the run if it were a member's
			}
		}, nil)
		err := errors.Join(
			lacks(0, nodes[0].err, "node 1 at ", "did not connect"),
			lacks(1, nodes[1].err, "node 1 cannot reach node 0 at ", "node 2 at "))
		for _, m := range nodes {
			if text := fmt.Sprint(m.err); strings.Contains(text, "fingerprint") {
				err = errors.Join(err, fmt.Errorf("one who is no member was judged: %s", text))
			}
		}
		return err
	})
}

// wrongSecret has some who know another secret dial before and beside a member.
func wrongSecret(s *suite) {
	l := s.listen()
	h := hello(1)
	h.To = 0
	var strangers sync.WaitGroup
	for range 5 {
		strangers.Go(func() {
			c, err := s.Network.Dial(s.ctx, l.Addr(), h, []byte("what another run knows"))
			if err == nil {
				c.Close()
				s.Error("connected without the secret")
				return
			}
			var told *transport.Mismatch
			if errors.As(err, &told) || strings.Contains(err.Error(), "run-a") || strings.Contains(err.Error(), "model-a") {
				s.Errorf("without the secret, it was told: %v", err)
			}
		})
	}
	dialed := s.dial(l.Addr())
	c, err := l.Accept(s.ctx, hello(0), secret)
	s.must(err)
	defer c.Close()
	s.must((<-dialed).err)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() { strangers.Wait(); cancel() }()
	if c, err := l.Accept(ctx, hello(0), secret); err == nil {
		c.Close()
		s.Error("accepted one without the secret")
	}
	strangers.Wait()
}

func noSecret(s *suite) {
	l := s.listen()
	for _, bad := range [][]byte{nil, {}, []byte("15 bytes, short")} {
		if _, err := l.Accept(s.ctx, hello(0), bad); err == nil || !strings.Contains(err.Error(), "secret") {
			s.Errorf("accept with the secret %q: %v", bad, err)
		}
		if _, err := s.Network.Dial(s.ctx, l.Addr(), hello(1), bad); err == nil || !strings.Contains(err.Error(), "secret") {
			s.Errorf("dial with the secret %q: %v", bad, err)
		}
		if _, err := transport.Mesh(s.ctx, s.Network, l, hello(0), bad, nil); err == nil || !strings.Contains(err.Error(), "secret") {
			s.Errorf("a mesh with the secret %q: %v", bad, err)
		}
	}
}

// hurry is long enough for a mesh to see what is wrong, usually.
const hurry = time.Second / 2

// again makes an attempt that ends with s.ctx, after some time. While that fails,
// it gives the next ones, three in all, four times as long: the machine may be
// busy with other things.
func (s *suite) again(within time.Duration, attempt func() error) {
	s.Helper()
	all := s.ctx
	defer func() { s.ctx = all }()
	var err error
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		s.ctx = ctx
		err = attempt()
		cancel()
		if err == nil {
			return
		}
		s.Logf("not within %v: %v", within, err)
		within = min(4*within, limit)
	}
	s.Fatal(err)
}
