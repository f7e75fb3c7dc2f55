package tcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
	"github.com/godwit-ps/godwit/internal/coordtest"
	"github.com/godwit-ps/godwit/internal/pending"
)

const token = "the token of the test"

func serve(t *testing.T, cfg coord.Config) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(ln, cfg, token, godwit.NoNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestServerConforms(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Harness {
		var mu sync.Mutex
		servers := map[int]*Server{} // by number of nodes
		at := func(cfg coord.Config) string {
			mu.Lock()
			defer mu.Unlock()
			if servers[cfg.Nodes] == nil {
				servers[cfg.Nodes] = serve(t, coord.Config{Run: cfg.Run, Nodes: cfg.Nodes, TTL: cfg.TTL})
			}
			return servers[cfg.Nodes].Addr()
		}
		return coordtest.Harness{
			TTL:  time.Minute,
			Loss: time.Minute,
			Join: func(ctx context.Context, cfg coord.Config) (coord.Session, error) {
				if _, err := cfg.Checked(); err != nil {
					return nil, err
				}
				return Join(ctx, nil, at(cfg), token, godwit.NoNode, cfg)
			},
			Kill: func(s coord.Session) {
				_ = s.(*session).conn.Close()
				<-s.(*session).over // else Close may still try to take leave
			},
		}
	})
}

func config(nodes, i int) coord.Config {
	return coord.Config{Run: "r", Nodes: nodes, Addr: string(rune('a'+i)) + ":1", TTL: time.Minute}
}

func joinAll(t *testing.T, s *Server, seats ...godwit.NodeID) []coord.Session {
	t.Helper()
	ss, errs := make([]coord.Session, len(seats)), make([]error, len(seats))
	var wg sync.WaitGroup
	for i, seat := range seats {
		wg.Go(func() { ss[i], errs[i] = Join(t.Context(), nil, s.Addr(), token, seat, config(len(seats), i)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range ss {
			_ = s.Close(context.Background())
		}
	})
	return ss
}

// A node gets the id that it asks for, whoever comes first, and no two get the same.
func TestSeatsAreThoseThatWereAskedFor(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 3, TTL: time.Minute})
	for i, m := range joinAll(t, s, 2, 0, 1) {
		want := godwit.NodeID([]int{2, 0, 1}[i])
		if m.Self() != want || m.Members()[want].Addr != config(3, i).Addr {
			t.Errorf("node %d is %d, at %s", i, m.Self(), m.Members()[want].Addr)
		}
	}
	again := serve(t, coord.Config{Run: "r", Nodes: 2, TTL: time.Minute})
	first := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, err := Join(ctx, nil, again.Addr(), token, 1, config(2, 0)); first <- err }()
	for {
		again.mu.Lock()
		taken := again.seats[1] != nil
		again.mu.Unlock()
		if taken {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := Join(t.Context(), nil, again.Addr(), token, 1, config(2, 1)); err == nil {
		t.Error("two nodes have one seat")
	}
	cancel()
	if err := <-first; err == nil {
		t.Error("a join that was given up succeeded")
	}
}

// A place of a run that goes on, one that the run does not have, and one of a server that has ended are nobody's.
func TestNobodyIsSeatedWhereThereIsNoPlace(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 2, TTL: time.Minute})
	seated := func(seat godwit.NodeID) bool {
		here, there := net.Pipe()
		defer there.Close()
		cfg := config(2, 2)
		c := &client{peer: newPeer(here, time.Minute, 2), seat: seat, reg: ledger.NewRegistration(cfg), known: func() {}}
		defer c.work.Wait()
		defer here.Close()
		defer c.end()
		defer s.leave(c)
		before := s.members()
		return s.enter(c, hello{c.reg, cfg.Run, time.Minute.Milliseconds()}, false) && s.members() > before
	}
	left := func(m coord.Session, want int) {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(20 * time.Second); s.members() > want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d nodes have a seat, want %d", s.members(), want)
			}
		}
	}
	ms := joinAll(t, s, 0, 1)
	left(ms[1], 1)
	if seated(1) || seated(godwit.NoNode) {
		t.Error("a node takes the place of one that has left, and the run goes on")
	}
	left(ms[0], 0)
	if seated(2) {
		t.Error("a node is the third of two")
	}
	if !seated(1) {
		t.Error("when all have left, nobody gets a place in the next run")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if seated(0) {
		t.Error("a node gets a place at a server that has ended")
	}
}

func TestAWrongTokenIsNotLetIn(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := Join(ctx, nil, s.Addr(), "another token for test", 0, config(1, 0)); err == nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
	joinAll(t, s, 0)
}

// A join that is given up has the cause in its error, beside what it waited for: somebody who serves, or an answer.
func TestAJoinThatIsGivenUpSaysWhy(t *testing.T) {
	for _, there := range []bool{false, true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		want := coord.ErrMissing
		if !there {
			_, want = ln.Close(), coord.ErrCoordinator
		}
		why := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := Join(ctx, nil, ln.Addr().String(), token, 0, config(1, 0)); ended <- err }()
		if there {
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			cancel(why)
			c.Close() // else it would wait for the last word
		}
		time.Sleep(10 * time.Millisecond) // so that it waits, as a rule
		cancel(why)
		if err := <-ended; !errors.Is(err, why) || !errors.Is(err, want) {
			t.Errorf("somebody is there: %v: got %v, want %v and %v", there, err, why, want)
		}
	}
}

// A node of which nothing is heard is lost after the TTL, though its connection stands.
func TestASilentNodeIsLost(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 2, TTL: 300 * time.Millisecond})
	ss := joinAll(t, s, 0, 1)
	silent := ss[1].(*session)
	silent.mu.Lock()
	silent.peer.mu.Lock() // its writer stands still
	select {
	case <-ss[0].Done():
	case <-time.After(time.Minute):
		t.Error("nobody has noticed")
	}
	silent.peer.mu.Unlock()
	silent.mu.Unlock()
	t.Log(ss[0].Err())
}

// Nodes whose server has ended, or is not reached any more, know that both the coordinator and the node with it are lost.
func TestALostServerIsALostCoordinatorAndNode(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	m := joinAll(t, s, 0)[0]
	s.mu.Lock()
	s.seats[0].end()
	s.mu.Unlock()
	<-m.Done()
	if err := m.Err(); !errors.Is(err, coord.ErrCoordinator) || !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("the session ended with %v, want %v and %v", err, coord.ErrCoordinator, godwit.ErrPeerLost)
	}
}

// A node that has heard nothing of the server for most of the TTL, and then loses a peer, does not take that for the cause.
func TestAPeerThatEndsWhileTheServerIsSilentIsNotTheCause(t *testing.T) {
	for _, silent := range []bool{false, true} {
		m := joinAll(t, serve(t, coord.Config{Run: "r", Nodes: 2, TTL: time.Hour}), 0, 1)[0].(*session)
		if silent {
			m.peer.mu.Lock()
			m.heard = m.heard.Add(-45 * time.Minute)
			m.peer.mu.Unlock()
		}
		m.Fail(&coord.MemberError{Member: m.Members()[1], Err: fmt.Errorf("%w: connection ended", godwit.ErrPeerLost)})
		err := m.Err()
		if errors.Is(err, coord.ErrCoordinator) != silent || !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), m.Members()[1].String()+": node lost: connection ended") {
			t.Errorf("the server is silent: %v; got %v", silent, err)
		}
	}
}

// Who has nothing to say tells that it lives.
func TestAPeerWithNothingToSayPings(t *testing.T) {
	a, b := net.Pipe()
	p := newPeer(a, time.Second, 1)
	defer p.work.Wait()
	defer a.Close()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	if k, _, _, err := readFrame(b); err != nil || k != ping {
		t.Errorf("it sends %d, %v, want a ping", k, err)
	}
}

// All nodes say the most that they may in an exchange while one of them does not read. It gets it later.
func TestAPeerThatStandsStillIsNotLostByAnExchange(t *testing.T) {
	const nodes = 24
	a, b := net.Pipe()
	p := newPeer(a, time.Minute, nodes)
	defer p.work.Wait()
	defer p.end()
	defer a.Close()
	payload := make([]byte, coord.MaxPayload)
	for id := range godwit.NodeID(nodes) {
		p.send(message, id, payload)
	}
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	for want := range godwit.NodeID(nodes) {
		if k, id, got, err := readFrame(b); err != nil || k != message || id != want || len(got) != len(payload) {
			t.Fatalf("it got kind %d of node %d, %d bytes, %v; want what node %d said", k, id, len(got), err, want)
		}
	}
}

func TestAPeerThatReadsNothingIsLost(t *testing.T) {
	a, b := net.Pipe()
	p := newPeer(a, time.Minute, 1)
	defer p.work.Wait()
	defer p.end()
	defer a.Close()
	payload := make([]byte, maxFrame)
	for range 2 * (queued(1)/maxFrame + 1) { // all that were queued once may be under way
		p.send(message, 0, payload)
	}
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, b); err != nil {
		t.Errorf("the connection has not ended: %v", err)
	}
}

// Who connects and says nothing is not waited for.
func TestCloseDoesNotWaitForStrangers(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for s.unknown() == 0 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > handshake*3/4 {
		t.Errorf("it was waited for: %v", d)
	}
}

// unknown is how many connections have not shown their token.
func (s *Server) unknown() int {
	return s.strangers.Len()
}

// Strangers are bounded. They keep no node from joining, and displace none that comes from elsewhere.
func TestStrangersAreBounded(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	var all []net.Conn
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	dial := func(from string) net.Conn {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		return c
	}
	var slow net.Conn // comes first, and has not begun to speak
	if runtime.GOOS == "linux" {
		slow = dial("127.0.0.2")
		for s.unknown() < 1 {
			time.Sleep(time.Millisecond)
		}
	}
	others := s.unknown()
	oldest := dial("127.0.0.1")
	for s.unknown() <= others {
		time.Sleep(time.Millisecond)
	}
	for range pending.MaxPerOrigin {
		dial("127.0.0.1")
	}
	_ = oldest.SetReadDeadline(time.Now().Add(handshake / 2)) // before it would be closed anyway
	if n, err := oldest.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("when one more came, the oldest got %d bytes, %v", n, err)
	}
	if n := s.unknown(); n > others+pending.MaxPerOrigin {
		t.Errorf("%d strangers are there", n)
	}
	if slow != nil {
		m, err := enter(t.Context(), slow, token, 0, config(1, 0))
		if err != nil {
			t.Fatalf("who came from elsewhere: %v", err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	joinAll(t, s, 0) // beside all that are left
}

// All nodes are told of all in one frame, however long their fingerprints are.
func TestTheSeatingOfManyNodesFitsIntoAFrame(t *testing.T) {
	const nodes = 300
	s := &Server{cfg: coord.Config{Run: "r", Nodes: nodes}}
	s.reset()
	c := coord.Config{Addr: "node-0123456789.example.com:40000", Fingerprint: strings.Repeat("f", 4096), Nodes: nodes}
	for i := range s.seats {
		s.seats[i] = &client{peer: &peer{most: queued(nodes), bell: make(chan struct{}, 1)}, reg: ledger.NewRegistration(c)}
	}
	s.sealLocked()
	if k, _, _, err := readFrame(bytes.NewReader(s.seats[0].queue)); k != sealed || err != nil {
		t.Errorf("a frame of kind %d, %v", k, err)
	}
}

// When the process that serves gives up, nodes that wait for others are told, and it does not wait for them.
func TestAServerThatEndsRefusesWhoWaits(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 2, TTL: time.Minute})
	c := config(2, 0)
	c.Join = time.Hour
	waits := make(chan error, 1)
	go func() { _, err := Join(t.Context(), nil, s.Addr(), token, 1, c); waits <- err }()
	for s.members() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-waits; !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "has ended before all nodes had arrived") {
		t.Errorf("the node that waited: %v", err)
	}
	// One that arrives while others are still told hears the same, and not that a run of no nodes has no place.
	s = serve(t, coord.Config{Run: "r", Nodes: 2, TTL: time.Minute})
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if _, err := Join(ctx, nil, s.Addr(), token, 0, c); !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "is about to end, and no node can join any more") {
		t.Errorf("the node that came late: %v", err)
	}
}

// members is how many nodes have a seat.
func (s *Server) members() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.seats {
		if c != nil {
			n++
		}
	}
	return n
}

func TestWhoHasTLSAloneIsTold(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	_, err := Join(t.Context(), &tls.Config{InsecureSkipVerify: true}, s.Addr(), token, 0, config(1, 0))
	if !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), "only one side has it") {
		t.Error(err)
	}
}

// The server's TTL holds for all: nodes that joined with a longer one are not lost, and those with a shorter one do not give up.
func TestTheTTLIsTheServers(t *testing.T) {
	const ttl = 30 * time.Second
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: ttl})
	for _, own := range []time.Duration{time.Second, time.Hour} {
		c := config(1, 0)
		c.TTL = own
		m, err := Join(t.Context(), nil, s.Addr(), token, 0, c)
		if err != nil {
			t.Fatal(err)
		}
		if got, signs := m.Lease(), m.(*session).ttl; got != ttl || signs != ttl {
			t.Errorf("a node that joined with a TTL of %v has a lease of %v, and gives signs of life for %v, want %v", own, got, signs, ttl)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestANodeMayWaitForTheOthersForEver(t *testing.T) {
	s := serve(t, coord.Config{Run: "r", Nodes: 1, TTL: time.Minute})
	c := config(1, 0)
	c.Join = math.MaxInt64
	m, err := Join(t.Context(), nil, s.Addr(), token, 0, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
