package slownet

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// server answers each connection by what it says.
func server(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 1<<16)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					if _, err := c.Write(b[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, n *Network, target string) net.Conn {
	t.Helper()
	addr, err := n.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends bytes and waits until they are back.
func exchange(t *testing.T, c net.Conn, sent []byte) time.Duration {
	t.Helper()
	began := time.Now()
	go func() { _, _ = c.Write(sent) }() // what is missing is missed below
	back := make([]byte, len(sent))
	if _, err := io.ReadFull(c, back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sent, back) {
		t.Fatal("other bytes came back")
	}
	return time.Since(began)
}

func hello(t *testing.T, from, to godwit.NodeID) []byte {
	t.Helper()
	b, err := wire.AppendHello(nil, wire.Hello{Run: "r", From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBothWaysTakeTheirLatency(t *testing.T) {
	n := New(2, 20*time.Millisecond, 0)
	defer n.Close()
	addr := server(t)
	c := dial(t, n, addr)
	for range 3 {
		if d := exchange(t, c, []byte("x")); d < 40*time.Millisecond {
			t.Errorf("there and back in %v, want 40 ms at least", d)
		}
	}
}

func TestBytesTakeTimeOnceTheDialerIsKnown(t *testing.T) {
	n := New(2, 0, 8e6) // a byte a microsecond
	defer n.Close()
	addr := server(t)
	c := dial(t, n, addr)
	// The hello comes in two pieces.
	first := hello(t, 1, 0)
	for _, part := range [][]byte{first[:3], first[3:]} {
		exchange(t, c, part)
	}
	sent := make([]byte, 50_000)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	// Two interfaces there and two back, each piece by piece.
	if d := exchange(t, c, sent); d < 50*time.Millisecond {
		t.Errorf("50 kB at 1 MB/s came back in %v, want 50 ms at least", d)
	}
}

// What two nodes send to a third at the same time, its interface receives one after
// the other.
func TestAnInterfaceReceivesOnePieceAfterTheOther(t *testing.T) {
	const size = 50_000
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.CopyN(io.Discard, c, size); err == nil {
					_, _ = c.Write([]byte{1}) // what is missing is missed below
				}
			}()
		}
	}()
	n := New(3, 0, 8e6) // a byte a microsecond
	defer n.Close()
	began := time.Now()
	var both []net.Conn
	for from := range 2 {
		c := dial(t, n, l.Addr().String())
		first := hello(t, godwit.NodeID(1+from), 0)
		if _, err := c.Write(append(first, make([]byte, size-len(first))...)); err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	for _, c := range both {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	// The first interface of each passes on 50 kB in 50 ms.
	if d := time.Since(began); d < 2*size*time.Microsecond*9/10 {
		t.Errorf("50 kB each of two nodes arrived in %v, want 100 ms", d)
	}
}

func TestCloseEndsAllConnections(t *testing.T) {
	n := New(2, time.Millisecond, 1e9)
	addr := server(t)
	c := dial(t, n, addr)
	exchange(t, c, []byte("x"))
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if _, err := n.Listen(addr); err == nil {
		t.Error("a closed network listens")
	}
}
