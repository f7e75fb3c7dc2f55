package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
)

// A gate is a network in memory at which single nodes can be made to read
// nothing for a while. Nodes are named by the order of their addresses, which
// is not that of their ids; of says which id an address got.
type gate struct {
	sw     mem.Switch
	mu     sync.Mutex
	closed map[int]chan struct{} // by node id: open when closed
}

func newGate() *gate { return &gate{closed: map[int]chan struct{}{}} }

func (g *gate) place(i int) (transport.Network, transport.Listener, error) {
	l, err := g.sw.Listen(fmt.Sprintf("gate-%d", i))
	return gateNet{g}, gateListener{l, g}, err
}

// shut has a node read no more frames but the ones that it is reading already.
func (g *gate) shut(node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed[node] = make(chan struct{})
}

func (g *gate) open(node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed[node])
	delete(g.closed, node)
}

type gateNet struct{ g *gate }

func (n gateNet) Listen(addr string) (transport.Listener, error) { panic("not used") }

func (n gateNet) Dial(ctx context.Context, addr string, hello wire.Hello, secret []byte) (transport.Conn, error) {
	c, err := n.g.sw.Dial(ctx, addr, hello, secret)
	if err != nil {
		return nil, err
	}
	return gateConn{c, n.g, int(hello.From)}, nil
}

type gateListener struct {
	transport.Listener
	g *gate
}

func (l gateListener) Accept(ctx context.Context, self wire.Hello, secret []byte) (transport.Conn, error) {
	c, err := l.Listener.Accept(ctx, self, secret)
	if err != nil {
		return nil, err
	}
	return gateConn{c, l.g, int(self.From)}, nil
}

type gateConn struct {
	transport.Conn
	g    *gate
	node int
}

func (c gateConn) ReadFrame() ([]byte, error) {
	f, err := c.Conn.ReadFrame()
	c.g.mu.Lock()
	wait := c.g.closed[c.node]
	c.g.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return f, err
}
