package tcp

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
	"github.com/godwit-ps/godwit/internal/pending"
)

// A Server coordinates the runs of one name, one after the other.
type Server struct {
	cfg   coord.Config
	token []byte
	home  godwit.NodeID // of this process
	ln    net.Listener
	work  sync.WaitGroup // the goroutine that accepts, and one of each connection

	strangers pending.Set // connections of which nobody knows yet whose they are
	life      context.Context
	end       context.CancelFunc // ends the connections of strangers, those to come as well

	mu          sync.Mutex // held while a message goes to all, which makes the one order
	closed      bool
	conns       map[*client]bool
	incarnation uint64
	seats       []*client // by id; nil: free
	roster      *ledger.Roster
	sealed      bool
	idle        chan struct{} // closed when nobody is connected; nil: nobody waits for that
}

// A client is a node's connection at the server.
type client struct {
	*peer
	seat  godwit.NodeID
	reg   ledger.Registration
	known func() // says that this is no stranger any more
	left  bool   // orderly, or refused
}

// hello is what a node sends first.
type hello struct {
	ledger.Registration
	Run    string `json:"run"`
	JoinMs int64  `json:"join_ms"` // how long it waits for the others
}

// seating is what a node that is a member is told.
type seating struct {
	Registrations []ledger.Registration `json:"registrations"` // by id, without fingerprints
	Incarnations  []uint64              `json:"incarnations"`  // by id
	Home          godwit.NodeID         `json:"home"`          // the node of the process that serves
}

// refusal is why a node is no member.
type refusal struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// handshake is within what time a connection must show its token and registration.
const handshake = 10 * time.Second

// Serve serves at a listener until Close. Of cfg it uses Run, Nodes and TTL, which is that of all nodes, whatever they
// join with. token is what
// nodes prove by that they may join. home is the node of this process, which the others name when
// they lose the server; [godwit.NoNode]: there is none.
func Serve(ln net.Listener, cfg coord.Config, token string, home godwit.NodeID) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = ln.Addr().String()
	}
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, errors.New("coord: a server needs a token")
	}
	s := &Server{cfg: cfg, token: []byte(token), home: home, ln: ln, conns: map[*client]bool{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.reset()
	s.work.Go(s.accept)
	return s, nil
}

// reset makes room for a run. The lock is held, or nobody has the server yet.
func (s *Server) reset() {
	s.seats, s.roster, s.sealed = make([]*client, s.cfg.Nodes), ledger.NewRoster(s.cfg), false
}

// Addr returns where the server listens.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close waits within ctx until no node is connected, and ends the server. Connections that have not registered are not waited for. Nodes
// that wait for others, who cannot join any more, are refused.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if !s.sealed {
		s.refuseAllLocked("ended", func(godwit.NodeID) error { return s.ended("has ended before all nodes had arrived") })
	}
	idle := make(chan struct{})
	if s.idle = idle; len(s.conns) == 0 {
		close(idle)
		s.idle = nil
	}
	s.mu.Unlock()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("coord: run %q: nodes are still connected: %w", s.cfg.Run, context.Cause(ctx))
	}
	_ = s.ln.Close()
	s.mu.Lock()
	s.end()
	for c := range s.conns {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		switch {
		case err == nil:
			ctx, drop := context.WithCancelCause(s.life)
			stranger := s.strangers.Add(conn.RemoteAddr(), drop)
			closes := context.AfterFunc(ctx, func() { _ = conn.Close() })
			s.work.Go(func() {
				s.serve(conn, func() {
					closes()
					s.strangers.Remove(stranger)
					drop(nil)
				})
			})
		case errors.Is(err, net.ErrClosed):
			return
		case s.strangers.Relieve(err):
		default:
			time.Sleep(10 * time.Millisecond) // it passes
		}
	}
}

// serve is the life of a connection. It calls known once it has a registration, or has ended.
func (s *Server) serve(conn net.Conn, known func()) {
	defer known()
	_ = conn.SetReadDeadline(time.Now().Add(handshake))
	token := make([]byte, len(s.token))
	if _, err := io.ReadFull(conn, token); err != nil || subtle.ConstantTimeCompare(token, s.token) == 0 {
		_ = conn.Close()
		return
	}
	k, seat, payload, err := readFrame(conn)
	var h hello
	if err != nil || k != register || json.Unmarshal(payload, &h) != nil {
		_ = conn.Close()
		return
	}
	c := &client{peer: newPeer(conn, s.cfg.TTL, s.cfg.Nodes), seat: seat, reg: h.Registration, known: known}
	defer conn.Close()
	defer c.work.Wait()
	defer c.end()
	c.send(lease, 0, binary.BigEndian.AppendUint64(nil, uint64(s.cfg.TTL)))
	for until := time.Now().Add(remains); !s.enter(c, h, time.Now().After(until)); {
		time.Sleep(20 * time.Millisecond)
	}
	defer s.leave(c)
	timer := time.AfterFunc(time.Duration(h.JoinMs)*time.Millisecond, func() { s.tooLate(c, h) })
	defer timer.Stop()
	for {
		k, _, payload, err := c.read()
		switch {
		case err == nil && k == message:
			s.spread(c, payload)
		case err == nil && k == withdraw:
			s.tooLate(c, h)
		default:
			s.gone(c, err)
			return
		}
	}
}

// remains is for how long a node that finds its seat taken waits for it: who had it may have
// ended, and its connection not yet.
const remains = time.Second

// enter gives a node its seat, and seals the run if it was the last; or refuses it. It returns
// false if the seat is taken, unless that is the last word.
func (s *Server) enter(c *client, h hello, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.known() // with the lock: Close ends either a stranger's connection or a node's
	s.conns[c] = true
	if h.Run != s.cfg.Run || h.Nodes != s.cfg.Nodes {
		c.refuse("mismatch", fmt.Sprintf("coord: %v: this is run %q of %d nodes, not %q of %d", coord.ErrMismatch, s.cfg.Run, s.cfg.Nodes, h.Run, h.Nodes))
		return true
	}
	if s.closed && !s.sealed { // while others still hear why
		c.refuse("ended", s.ended("is about to end, and no node can join any more").Error())
		return true
	}
	seat := c.seat
	if seat == godwit.NoNode {
		seat, _ = s.roster.Free()
	}
	if s.sealed || int(seat) >= len(s.seats) || s.seats[seat] != nil {
		if last {
			c.refuse("complete", s.complete(h))
		}
		return last
	}
	c.seat = seat
	s.incarnation++
	c.reg.Incarnation = s.incarnation
	s.seats[c.seat] = c
	s.roster.Put(c.seat, c.reg)
	if err := s.roster.Mismatch(c.seat); err != nil {
		s.refuseAllLocked("mismatch", s.roster.Mismatch)
	} else if _, free := s.roster.Free(); !free {
		s.sealLocked()
	}
	return true
}

// ended is why nobody can join any more.
func (s *Server) ended(what string) error {
	return fmt.Errorf("coord: run %q: %w: the process that serves it %s: its error, if it has one, says why", s.cfg.Run, coord.ErrCoordinator, what)
}

// complete is the text for a node that finds no place, which the roster makes by its address.
func (s *Server) complete(h hello) string {
	cfg := s.cfg
	cfg.Addr = h.Addr
	r := ledger.NewRoster(cfg)
	for id, c := range s.seats {
		if c != nil {
			r.Put(godwit.NodeID(id), c.reg)
		}
	}
	return r.Complete().Error()
}

func (c *client) refuse(code, text string) {
	b, err := json.Marshal(refusal{code, text})
	if err != nil {
		panic(err) // of two strings
	}
	c.left = true
	c.send(refused, 0, b)
	c.end()
}

// refuseAllLocked ends the wait of all, each for a reason.
func (s *Server) refuseAllLocked(code string, why func(id godwit.NodeID) error) {
	for id, c := range s.seats {
		if c != nil {
			c.refuse(code, why(godwit.NodeID(id)).Error())
		}
	}
	s.reset()
}

func (s *Server) sealLocked() {
	s.sealed = true
	all := seating{Home: s.home}
	for _, c := range s.seats {
		reg := c.reg
		reg.Fingerprint = "" // each node has the same
		all.Registrations = append(all.Registrations, reg)
		all.Incarnations = append(all.Incarnations, c.reg.Incarnation)
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err) // of strings and numbers
	}
	for _, c := range s.seats {
		c.send(sealed, c.seat, b)
	}
}

// tooLate ends the wait of a node whose run has not been sealed in time.
func (s *Server) tooLate(c *client, h hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sealed && int(c.seat) < len(s.seats) && s.seats[c.seat] == c {
		c.refuse("missing", s.roster.Missing("", fmt.Errorf("waited up to %v", time.Duration(h.JoinMs)*time.Millisecond)).Error())
		s.seats[c.seat] = nil
		s.roster.Remove(c.seat)
	}
}

// spread sends what a member says to all.
func (s *Server) spread(c *client, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.member(c) {
		return
	}
	if m, err := ledger.DecodeMessage(payload); err == nil && m.Kind == ledger.Leave {
		c.left = true
	}
	for _, to := range s.seats {
		if to != nil {
			to.send(message, c.seat, payload)
		}
	}
	s.overLocked()
}

// overLocked makes room for the next run when all have left this one.
func (s *Server) overLocked() {
	for _, c := range s.seats {
		if c != nil && !c.left {
			return
		}
	}
	s.reset()
}

// gone tells the others of a member whose connection has ended without a word. leave follows.
func (s *Server) gone(c *client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.member(c) {
		return
	}
	c.left = true
	cause := "its connection to the coordinator has ended"
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		cause = fmt.Sprintf("nothing was heard of it for %v", s.cfg.TTL)
	}
	for _, to := range s.seats {
		if to != nil && to != c {
			to.send(lost, c.seat, []byte(cause))
		}
	}
}

// member reports whether a connection is that of a member who has not left. The lock is held.
func (s *Server) member(c *client) bool {
	return s.sealed && !c.left && int(c.seat) < len(s.seats) && s.seats[c.seat] == c
}

// leave frees the seat of a node. The last one ends the run.
func (s *Server) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if len(s.conns) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	if int(c.seat) >= len(s.seats) || s.seats[c.seat] != c {
		return
	}
	s.seats[c.seat] = nil
	if s.sealed {
		s.overLocked()
	} else {
		s.roster.Remove(c.seat)
	}
}
