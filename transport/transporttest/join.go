package transporttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/wire"
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
	err := s.in("Dial", func() error { _, err := s.Network.Dial(ctx, l.Addr(), hello(1)); return err })
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
	if took := time.Since(start); took > s.Patience+limit/4 {
		s.Errorf("took %v, want about %v", took, s.Patience)
	}
}

func acceptEnds(s *suite) {
	l := s.listen()
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx, hello(0)); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(s.ctx, hello(0)); accepted <- err }()
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
	c, err := l.Accept(s.ctx, hello(0)) // those who say nothing could stay for longer than s.ctx
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
			if took := time.Since(start); took > s.Patience+limit/4 {
				return fmt.Errorf("the stranger who said %.10q was dropped after %v (%v), want %v", rubbish[i], took, err, s.Patience)
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

// mesh has n nodes join, with what edit makes of their hellos and addresses.
func (s *suite) mesh(n int, edit func(id godwit.NodeID, h *wire.Hello, addrs map[godwit.NodeID]string), before func(l transport.Listener)) []meshed {
	s.Helper()
	ls := make([]transport.Listener, n)
	addrs := func() map[godwit.NodeID]string {
		m := map[godwit.NodeID]string{}
		for i, l := range ls {
			m[godwit.NodeID(i)] = l.Addr()
		}
		return m
	}
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
		h, a := hello(godwit.NodeID(i)), addrs()
		if edit != nil {
			edit(h.From, &h, a)
		}
		delay := time.Duration(s.rand.IntN(30)) * time.Millisecond
		go func() {
			time.Sleep(delay)
			conns, err := transport.Mesh(s.ctx, s.Network, ls[i], h, a)
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
		addrs := map[godwit.NodeID]string{0: l0.Addr(), 1: l1.Addr()}
		first := make(chan meshed, 1)
		go func() {
			conns, err := transport.Mesh(s.ctx, s.Hasty, l1, hello(1), addrs)
			first <- meshed{conns, err}
		}()
		time.Sleep(s.Patience * 5 / 4)
		conns, err := transport.Mesh(s.ctx, s.Hasty, l0, hello(0), addrs)
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
			if c, err := s.Network.Dial(s.ctx, l.Addr(), h); err == nil {
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
	nodes := s.mesh(2, func(id godwit.NodeID, h *wire.Hello, addrs map[godwit.NodeID]string) {
		addr[0], addr[1] = addrs[0], addrs[1]
		h.Fingerprint = fmt.Sprintf("model-%d", id)
	}, nil)
	s.must(lacks(0, nodes[0].err, "node 1 at "+addr[1]+" runs a different model (fingerprint model-1, here model-0)"))
	s.must(lacks(1, nodes[1].err, "node 0 at "+addr[0]+" runs a different model (fingerprint model-0, here model-1)"))
}

func meshWrongRun(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(2, func(id godwit.NodeID, h *wire.Hello, _ map[godwit.NodeID]string) {
			h.Run = fmt.Sprintf("run-%d", id)
		}, nil)
		// Who was dialed by it need not be in the wrong, and waits for its own.
		return errors.Join(
			lacks(0, nodes[0].err, "node 1 at ", "did not connect", `a stranger was dropped: one who calls itself node 1 belongs to run "run-1", not to "run-0"`),
			lacks(1, nodes[1].err, "node 0 at ", `belongs to run "run-0", not to "run-1"`))
	})
}

func meshWrongAddress(s *suite) {
	s.again(hurry, func() error {
		nodes := s.mesh(3, func(id godwit.NodeID, _ *wire.Hello, addrs map[godwit.NodeID]string) {
			if id == 2 {
				addrs[0], addrs[1] = addrs[1], addrs[0]
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
		self := hello(1)
		_, err := transport.Mesh(s.ctx, s.Network, l, self, map[godwit.NodeID]string{0: gone.Addr(), 1: l.Addr(), 2: "nowhere"})
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error %v does not wrap %v", err, context.DeadlineExceeded)
		}
		return lacks(1, err, "node 0 at "+gone.Addr()+" cannot be reached", "node 2 at nowhere did not connect")
	})
}

// hurry is long enough for a mesh to see what is wrong, usually.
const hurry = 2 * time.Second

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
