package tcp

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// A session is a member of a sealed run. One goroutine, follow, applies what the server sends.
type session struct {
	*ledger.Ledger
	*peer
	cfg     coord.Config
	home    godwit.NodeID // of the process that serves
	begun   chan struct{} // closed when the server has answered
	over    chan struct{} // closed when the connection has ended
	closing sync.Once
	closed  error // result of Close

	mu   sync.Mutex
	said []chan struct{} // of messages that have not come back: closed when they do
}

// refusals are the errors of refusals, by their code.
var refusals = map[string]error{"mismatch": coord.ErrMismatch, "missing": coord.ErrMissing, "complete": coord.ErrComplete, "ended": coord.ErrCoordinator}

// A refusedError is what the server said.
type refusedError struct {
	text string
	is   error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.is }

// Join makes this process a node of the run that is coordinated at an address. The TTL is the server's. seat is the id
// that it is to have; [godwit.NoNode]: any. It returns when all nodes are there, and tries
// again while nobody serves at the address yet.
//
// At a server whose listener speaks TLS ([tls.NewListener]), the server's certificate is to name the host
// of addr, or the configuration's ServerName. Without a configuration, nil, nothing is encrypted.
func Join(ctx context.Context, config *tls.Config, addr, token string, seat godwit.NodeID, cfg coord.Config) (coord.Session, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, max(cfg.Join, cfg.Join+lastWord), fmt.Errorf("no word from %s within %v", addr, cfg.Join))
	defer cancel()
	conn, err := dial(ctx, config, addr)
	if err != nil {
		return nil, fmt.Errorf("coord: run %q: %w: %s: %w", cfg.Run, coord.ErrCoordinator, addr, err)
	}
	s, err := enter(ctx, conn, token, seat, cfg)
	if err == nil {
		return s, nil
	}
	_ = conn.Close()
	var r *refusedError
	if errors.As(err, &r) {
		return nil, err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		return nil, fmt.Errorf("coord: run %q: %w: %w", cfg.Run, coord.ErrMissing, err)
	}
	return nil, fmt.Errorf("coord: run %q: %w: %s ended the connection, as it does with a wrong token, or if only one side has TLS: %w", cfg.Run, coord.ErrCoordinator, addr, err)
}

// dial connects to a server, which may not be there yet. An error after the end of ctx has its cause.
func dial(ctx context.Context, config *tls.Config, addr string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil && config != nil {
			return encrypted(ctx, conn, config, addr)
		}
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// encrypted makes a connection one by TLS.
func encrypted(ctx context.Context, conn net.Conn, config *tls.Config, addr string) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr) // it was dialed
	}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		var certificate *tls.CertificateVerificationError // says enough
		if ctx.Err() == nil && !errors.As(err, &certificate) {
			err = fmt.Errorf("no TLS was agreed on, as if only one side has it: %w", err)
		}
		return nil, err
	}
	return c, nil
}

func enter(ctx context.Context, conn net.Conn, token string, seat godwit.NodeID, cfg coord.Config) (*session, error) {
	reg := ledger.NewRegistration(cfg)
	b, err := json.Marshal(hello{reg, cfg.Run, cfg.Join.Milliseconds()})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(appendFrame([]byte(token), register, seat, b)); err != nil {
		return nil, err
	}
	if cfg.TTL, err = readLease(ctx, conn, cfg.TTL); err != nil {
		return nil, err
	}
	s := &session{peer: newPeer(conn, cfg.TTL, cfg.Nodes), cfg: cfg, begun: make(chan struct{}), over: make(chan struct{})}
	stop := context.AfterFunc(ctx, s.withdraw)
	k, self, payload, err := s.read()
	stop()
	if err == nil {
		err = s.begin(k, self, payload)
	}
	close(s.begun)
	if err != nil {
		s.end()
		s.work.Wait()
		return nil, err
	}
	go s.follow()
	return s, nil
}

// readLease reads the first frame of a server, for which it waits within a time, and for the last word when ctx ends: the
// server may count on this node already.
func readLease(ctx context.Context, conn net.Conn, within time.Duration) (time.Duration, error) {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now().Add(lastWord)) })()
	k, payload, err := ping, []byte(nil), error(nil)
	for k == ping && err == nil {
		k, _, payload, err = readFrame(conn)
	}
	if err != nil {
		return 0, err
	}
	if k != lease || len(payload) != 8 {
		return 0, fmt.Errorf("a frame of kind %d and %d bytes, want its lease: it may be of another version", k, len(payload))
	}
	ttl := time.Duration(binary.BigEndian.Uint64(payload))
	if ttl <= 0 || ttl > coord.MaxTTL {
		return 0, fmt.Errorf("a lease of %v", ttl)
	}
	return ttl, nil
}

// lastWord is for how long the server's answer to a node that does not wait any more is waited for.
const lastWord = 2 * time.Second

// withdraw asks for whom this node has waited in vain.
func (s *session) withdraw() {
	s.send(withdraw, 0, nil)
	time.AfterFunc(lastWord, func() {
		select {
		case <-s.begun:
		default:
			_ = s.conn.Close()
		}
	})
}

// begin takes the server's answer.
func (s *session) begin(k kind, self godwit.NodeID, payload []byte) error {
	switch k {
	case refused:
		var r refusal
		if err := json.Unmarshal(payload, &r); err != nil {
			return err
		}
		return &refusedError{r.Text, refusals[r.Code]}
	case sealed:
		var all seating
		if err := json.Unmarshal(payload, &all); err != nil {
			return err
		}
		if len(all.Registrations) != s.cfg.Nodes || len(all.Incarnations) != s.cfg.Nodes || int(self) >= s.cfg.Nodes {
			return fmt.Errorf("a run of %d nodes, and this is node %d", len(all.Registrations), self)
		}
		if s.home = all.Home; s.home != godwit.NoNode && int(s.home) >= s.cfg.Nodes {
			return fmt.Errorf("a run of %d nodes that node %d serves", s.cfg.Nodes, s.home)
		}
		r := ledger.NewRoster(s.cfg)
		for id, reg := range all.Registrations {
			reg.Incarnation = all.Incarnations[id]
			r.Put(godwit.NodeID(id), reg)
		}
		s.Ledger = ledger.New(self, r.Members(), r.Secret(), s.cfg.TTL, s.publish)
		s.Silent = s.silent
		return nil
	}
	return fmt.Errorf("a frame of kind %d", k)
}

// server returns who serves the run.
func (s *session) server() string {
	if s.home == godwit.NoNode {
		return "the process that serves it"
	}
	return fmt.Sprintf("%v, which serves it", s.Members()[s.home])
}

// follow applies what the server sends, until the connection ends.
func (s *session) follow() {
	defer close(s.over)
	for {
		k, id, payload, err := s.read()
		if err != nil {
			s.End(s.unserved(err))
			s.end()
			return
		}
		switch k {
		case lost:
			s.Lost(id, string(payload))
		case message:
			m, err := ledger.DecodeMessage(payload)
			if err != nil {
				s.End(fmt.Errorf("coord: run %q: node %d sent a message that this node does not understand: %w", s.cfg.Run, id, err))
				continue
			}
			s.Apply(id, m)
			if id == s.Self() {
				s.back()
			}
		}
	}
}

// unserved is the error of a session that hears nothing of the server any more.
func (s *session) unserved(why error) error {
	return fmt.Errorf("coord: run %q: %w: %w: %s, at %s, has ended, or cannot be reached: %w", s.cfg.Run, godwit.ErrPeerLost, coord.ErrCoordinator, s.server(), s.conn.RemoteAddr(), why)
}

// silent is the Silent of the ledger: the node that has the server within may stand still.
func (s *session) silent(lost *coord.MemberError) error {
	d := s.silence()
	if d < s.cfg.TTL*2/3 || lost.Member.ID == s.home {
		return nil
	}
	return s.unserved(fmt.Errorf("it has said nothing for %v: %v", d.Round(time.Millisecond), lost))
}

// back notes that the oldest message of this node that was under way has come back.
func (s *session) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.said) > 0 {
		close(s.said[0])
		s.said = s.said[1:]
	}
}

// publish implements ledger.Publish.
func (s *session) publish(ctx context.Context, m ledger.Message) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	came := make(chan struct{})
	s.mu.Lock()
	s.said = append(s.said, came)
	s.send(message, s.Self(), m.Encode())
	s.mu.Unlock()
	select {
	case <-came:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.over:
		if err := s.Err(); err != nil {
			return err
		}
		return coord.ErrCoordinator
	}
}

// Close implements coord.Session.
func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *session) close(ctx context.Context) error {
	s.End(godwit.ErrClosed)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.TTL)
		defer cancel()
	}
	var err error
	select {
	case <-s.over: // there is nothing to leave, and nobody to tell
	default:
		err = s.publish(ctx, ledger.Message{Kind: ledger.Leave})
	}
	s.end()
	_ = s.conn.Close()
	<-s.over
	s.work.Wait()
	if err != nil {
		return fmt.Errorf("coord: run %q: %v cannot leave orderly, the others will see a loss: %w", s.cfg.Run, s.Members()[s.Self()], err)
	}
	return nil
}
