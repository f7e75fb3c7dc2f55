package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// Names of messages of a link.
const (
	orders  = "order"
	reports = "report"
)

// An order is what the caller wants of its peer, the other process.
type order struct {
	Do string // start, usage, sent, fetch or close

	// start: the table and the policy of both nodes.
	Rows   uint64
	Dim    int
	Policy string
	// fetch: the peer localizes so many keys drawn from this seed.
	Seed uint64
	Keys int
}

// A report is the peer's answer to an order.
type report struct {
	Err       string
	Echo      string        // start: where the echo listens
	Processor time.Duration // usage: what the process has used
	SentBytes uint64        // sent: by its node so far
}

// ServePeer is the other process of the cases between two: it starts a node that
// owns half of the keys and an echo, and obeys the orders of the caller, which
// come from in and are answered to out, until the last or the end of in.
func ServePeer(ctx context.Context, in io.Reader, out io.Writer) error {
	s := newLink(peerNode, in, out)
	p := &peer{link: s}
	err := p.obey(ctx)
	if err != nil {
		s.end(err)
	}
	return err
}

// peerNode is the node of the other process.
const peerNode godwit.NodeID = 1

// A peer is the state of the other process.
type peer struct {
	link *link
	node *node.Node
	echo net.Listener
}

func (p *peer) obey(ctx context.Context) error {
	for {
		var o order
		if err := p.link.receive(ctx, orders, &o); err != nil {
			return err
		}
		if o.Do == "close" {
			return errors.Join(p.echo.Close(), p.node.Close(ctx))
		}
		r, err := p.do(ctx, &o)
		if err != nil {
			r.Err = err.Error()
		}
		if err := p.link.send(reports, r); err != nil {
			return err
		}
	}
}

func (p *peer) do(ctx context.Context, o *order) (r report, err error) {
	switch o.Do {
	case "start":
		if p.node, err = startNode(ctx, p.link, o); err != nil {
			return r, err
		}
		if err = fillOwn(ctx, p.node, o); err != nil {
			return r, err
		}
		if p.echo, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return r, err
		}
		r.Echo = p.echo.Addr().String()
		go serveEcho(p.echo)
	case "usage":
		r.Processor = host.ProcessorTime()
	case "sent":
		r.SentBytes = p.node.Stats().SentBytes
	case "fetch":
		keys := make([]godwit.Key, o.Keys)
		drawKeysOfPeer(p.node, keys, o.Seed, o.Rows)
		err = p.node.Worker(0).Localize(ctx, keys)
	default:
		err = fmt.Errorf("no order %q", o.Do)
	}
	return r, err
}

// fillOwn makes the rows of the keys whose home this node is.
func fillOwn(ctx context.Context, n *node.Node, o *order) error {
	const batch = 1000
	keys, buf := make([]godwit.Key, 0, batch), make([]float32, batch*o.Dim)
	for k := godwit.Key(0); uint64(k) < o.Rows; k++ {
		if n.Home(k) == peerNode {
			keys = append(keys, k)
		}
		if len(keys) == batch || uint64(k) == o.Rows-1 {
			if err := n.Worker(0).Pull(ctx, keys, buf[:len(keys)*o.Dim]); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
	return nil
}

// startNode starts this process's node of a pair.
func startNode(ctx context.Context, s *link, o *order) (*node.Node, error) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: o.Rows, Dim: o.Dim})
	if err != nil {
		return nil, err
	}
	policy, err := placement.ByName(o.Policy)
	if err != nil {
		return nil, err
	}
	l, err := tcp.Network{}.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close() // the nodes are connected once both have started
	if err := s.meet(ctx, l.Addr()); err != nil {
		return nil, err
	}
	return node.Start(ctx, node.Config{Model: m, Policy: policy, Workers: 1, Run: "bench", Session: s, Network: tcp.Network{}, Listener: l})
}

// A pair is two nodes, of this process and of a peer that it started.
type pair struct {
	rows   uint64
	dim    int
	policy string

	node  *node.Node // of this process
	link  *link
	child *exec.Cmd
	stdin io.Closer
	said  lastLine // what the peer says on stderr
	echo  string   // address
	drawn uint64   // seeds used
}

// startPair starts a peer and two nodes with a table of so many rows.
func startPair(ctx context.Context, command []string, rows uint64, dim int, policy placement.Policy) (*pair, error) {
	if len(command) == 0 {
		return nil, errors.New("no command for the other process (Options.Peer)")
	}
	p := &pair{rows: rows, dim: dim, policy: policy.Name(), child: exec.Command(command[0], command[1:]...)}
	p.child.Stderr = &p.said
	in, err := p.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.child.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := p.child.Start(); err != nil {
		return nil, fmt.Errorf("start the other process: %w", err)
	}
	p.stdin, p.link = out, newLink(0, in, out)
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// start starts both nodes.
func (p *pair) start(ctx context.Context) (err error) {
	o := &order{Do: "start", Rows: p.rows, Dim: p.dim, Policy: p.policy}
	if err := p.link.send(orders, o); err != nil {
		return fmt.Errorf("the other process: %w", err)
	}
	if p.node, err = startNode(ctx, p.link, o); err != nil {
		return err
	}
	r, err := p.reply(ctx)
	p.echo = r.Echo
	return err
}

// ask has the peer obey an order.
func (p *pair) ask(ctx context.Context, o order) (report, error) {
	o.Rows = p.rows
	if err := p.link.send(orders, &o); err != nil {
		return report{}, fmt.Errorf("the other process ended: %w", err)
	}
	return p.reply(ctx)
}

func (p *pair) reply(ctx context.Context) (r report, err error) {
	if err = p.link.receive(ctx, reports, &r); err == nil && r.Err != "" {
		err = fmt.Errorf("the other process: %s", r.Err)
	}
	return r, err
}

// draw fills keys with random ones whose home is the peer, other ones in each call.
func (p *pair) draw(keys []godwit.Key) {
	p.drawn++
	drawKeysOfPeer(p.node, keys, p.drawn, p.rows)
}

func drawKeysOfPeer(n *node.Node, keys []godwit.Key, seed, rows uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	for i := range keys {
		for keys[i] = godwit.Key(r.Uint64N(rows)); n.Home(keys[i]) != peerNode; {
			keys[i] = godwit.Key(r.Uint64N(rows))
		}
	}
}

func (p *pair) close(ctx context.Context) error {
	err := p.link.send(orders, &order{Do: "close"})
	err = errors.Join(err, p.node.Close(ctx))
	if err != nil {
		return errors.Join(err, p.kill())
	}
	return errors.Join(p.stdin.Close(), p.wait())
}

// kill ends the peer at once.
func (p *pair) kill() error {
	_ = p.child.Process.Kill() // it may have ended
	_ = p.child.Wait()
	p.link.end(errors.New("the other process was killed"))
	if s := p.said.String(); s != "" {
		return fmt.Errorf("the other process said: %s", s)
	}
	return nil
}

func (p *pair) wait() error {
	if err := p.child.Wait(); err != nil {
		return fmt.Errorf("the other process: %w: %s", err, p.said.String())
	}
	return nil
}

// A lastLine keeps the end of what is written to it.
type lastLine struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-1000):]
	return len(b), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
