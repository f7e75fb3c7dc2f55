//go:build unix

package tcp

import (
	"context"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/pending"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// flood opens connections to an address that say nothing, and others that say a
// byte now and then and come again when they are dropped. It returns when all were
// opened once.
func flood(t *testing.T, addr string, idle, slow int) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	begun := make(chan struct{}, slow)
	for range idle {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	hello := append(nonce(), make([]byte, wire.MaxHello)...)
	for range slow {
		wg.Go(func() {
			for first := true; ; first = false {
				c, err := net.Dial("tcp", addr)
				if first {
					begun <- struct{}{}
				}
				for i := 0; err == nil; i++ {
					select {
					case <-stop:
						c.Close()
						return
					case <-time.After(20 * time.Millisecond):
						_, err = c.Write(hello[i%len(hello):][:1])
					}
				}
				if c != nil {
					c.Close()
				}
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	for range slow {
		<-begun
	}
}

// Thousands who hold connections, from the address of the members too, keep them
// neither from meeting nor from much else: each takes a goroutine and little
// memory, and few of them stay.
func TestAFloodOfStrangersDelaysNoMember(t *testing.T) {
	const nodes, slow = 3, 200
	idle := 5000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 8000 {
		idle = int(files.Cur)/2 - 300
	}
	nw := Network{} // with the timeout of real ones
	var ls []transport.Listener
	var peers []transport.Peer
	for i := range nodes {
		l, err := nw.Listen(anyAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		ls = append(ls, l)
		peers = append(peers, transport.Peer{ID: godwit.NodeID(i), Addr: l.Addr()})
	}
	before := runtime.NumGoroutine()
	flood(t, ls[0].Addr(), idle, slow)
	if got := runtime.NumGoroutine() - before - slow; got > pending.Max+10 {
		t.Errorf("%d strangers take %d goroutines, want at most %d", idle+slow, got, pending.Max)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			conns, err := transport.Mesh(ctx, nw, ls[i], transport.Hello{Run: "run-a", From: godwit.NodeID(i)}, secret, peers)
			if err != nil {
				t.Error(err)
			}
			for _, c := range conns {
				t.Cleanup(func() { c.Close() })
			}
		})
	}
	wg.Wait()
	t.Logf("%d idle and %d slow strangers: the mesh took %v", idle, slow, time.Since(began))
}
