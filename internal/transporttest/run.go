// Package transporttest is the behaviour that every transport must show.
package transporttest

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A Setup is a network to be tested.
type Setup struct {
	// Its listeners and dialers bear with a busy machine for some minutes: what
	// happens must not depend on how fast.
	Network transport.Network

	// Hasty is the same one, of which Timeout is the longest time after which a
	// listener drops who says nothing and a dialer gives up one who does not
	// answer. Tests wait for it.
	Hasty   transport.Network
	Timeout time.Duration // of Hasty

	// Addr returns an address to listen at that is not in use.
	Addr func() string

	// Raw connects to a listener below the frames, to send what is none. It is
	// nil for a network that has nothing below.
	Raw func(addr string) (io.ReadWriteCloser, error)

	// Below is what carries the bytes of a connection of Network that was dialed;
	// nil like Raw.
	Below func(c transport.Conn) io.ReadWriteCloser
}

// secret is that of the run.
var secret = []byte("what only members know")

var seed = flag.Uint64("transport.seed", 0, "seed of the transport tests; 0 takes one from the clock")

// limit is how long anything may take that should happen soon: far more than
// needed, for machines that run tests are busy.
const limit = 4 * time.Minute

// Run tests the networks that factory makes, one for each behaviour.
func Run(t *testing.T, factory func(t *testing.T) Setup) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"hellos are exchanged", hellos},
		{"frames arrive whole and in order both ways at once", order},
		{"large frames arrive", largeFrames},
		{"frames that are tried arrive in order too", tries},
		{"a try does not wait for a slow reader", tryNeverWaits},
		{"no frame is ready that did not arrive", ready},
		{"a frame that lies about its length is not sent", lyingFrame},
		{"a slow reader holds the writer back and loses nothing", backPressure},
		{"the peer reads what was written before the close then EOF", eof},
		{"close ends waiting readers", closeEndsReaders},
		{"close ends a waiting writer", closeEndsWriter},
		{"writes to a closed peer fail", writeToClosedPeer},
		{"a garbage length is refused without memory for it", garbageLength},
		{"a claimed length takes no memory before the bytes come", claimedLength},
		{"dialing nobody fails", dialNobody},
		{"dialing one who never accepts ends with the context", dialSilentContext},
		{"dialing one who never accepts ends by itself", dialSilentPatience},
		{"accept ends with its context and with the listener", acceptEnds},
		{"an address is listened at once", listenTwice},
		{"strangers delay nobody", strangers},
		{"strangers are dropped", strangersDropped},
		{"who does not know the secret is told nothing and delays nobody", wrongSecret},
		{"a secret that is none is refused", noSecret},
		{"a mesh connects nodes that start in any order", meshConnects},
		{"a mesh connects a node that listens early and joins late", meshLate},
		{"a mesh with strangers at the door connects", meshWithStrangers},
		{"a mesh refuses a different model on both sides", meshWrongModel},
		{"a mesh refuses a node of another run", meshWrongRun},
		{"a mesh refuses another process than the member", meshWrongIncarnation},
		{"a mesh drops who does not know the secret", meshWrongSecret},
		{"a mesh refuses a node at the wrong address", meshWrongAddress},
		{"a mesh names who is missing", meshMissing},
		{"a mesh whose peer gave up before it confirmed waits for the peer to come again", meshUnconfirmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t}
			s.rand = s.newRand()
			s.countGoroutines()
			s.Setup = factory(t)
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			t.Cleanup(cancel)
			s.ctx = ctx
			c.test(s)
		})
	}
}

// suite is one test with its network.
type suite struct {
	*testing.T
	Setup
	rand *rand.Rand
	ctx  context.Context
}

func (s *suite) newRand() *rand.Rand {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("replay with -transport.seed %d", n)
		}
	})
	return rand.New(rand.NewPCG(n, 2))
}

// countGoroutines fails the test if it ends with more of them than it began with.
func (s *suite) countGoroutines() {
	before := runtime.NumGoroutine()
	s.Cleanup(func() {
		for end := time.Now().Add(limit / 4); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<16)
				s.Errorf("%d goroutines at the end, %d at the start:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				return
			}
		}
	})
}

// must fails the test at once with err.
func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// hello is what node id says of itself.
func hello(id godwit.NodeID) wire.Hello {
	return wire.Hello{Run: "run-a", From: id, To: godwit.NoNode, Incarnation: 7, Fingerprint: "model-a"}
}

func (s *suite) listen() transport.Listener {
	s.Helper()
	return s.listenAt(s.Network)
}

func (s *suite) listenAt(nw transport.Network) transport.Listener {
	s.Helper()
	l, err := nw.Listen(s.Addr())
	s.must(err)
	s.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.Errorf("close of the listener: %v", err)
		}
	})
	return l
}

// pair connects node 1 to node 0 and returns the connections of 0 and of 1.
func (s *suite) pair() (zero, one transport.Conn) {
	s.Helper()
	l := s.listen()
	dialed := s.dial(l.Addr())
	zero, err := l.Accept(s.ctx, hello(0), secret)
	s.must(err)
	s.Cleanup(func() { zero.Close() })
	d := <-dialed
	s.must(d.err)
	return zero, d.conn
}

type dialed struct {
	conn transport.Conn
	err  error
}

// dial connects node 1 to node 0 at addr.
func (s *suite) dial(addr string) <-chan dialed { return s.dialOver(s.Network, addr) }

func (s *suite) dialOver(nw transport.Network, addr string) <-chan dialed {
	result := make(chan dialed, 1)
	h := hello(1)
	h.To = 0
	go func() {
		c, err := nw.Dial(s.ctx, addr, h, secret)
		if err == nil {
			s.Cleanup(func() { c.Close() })
		}
		result <- dialed{c, err}
	}()
	return result
}

// frame makes a frame of n bytes, at least wire.HeaderLen, with content that
// depends on mark. It repeats after a prime number of bytes, so that a block
// out of place shows.
func frame(buf []byte, n int, mark uint64) []byte {
	buf = transport.Room(buf, n)
	var pattern [1021]byte
	r := rand.New(rand.NewPCG(mark, 3))
	for i := 0; i < min(n, len(pattern)-8); i += 8 {
		binary.LittleEndian.PutUint64(pattern[i:], r.Uint64())
	}
	for i := 0; i < n; {
		i += copy(buf[i:], pattern[:])
	}
	binary.LittleEndian.PutUint32(buf, uint32(n))
	return buf
}

// in fails the test if f does not end soon. It returns f's error.
func (s *suite) in(what string, f func() error) error {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return s.wait(what, done)
}

func (s *suite) wait(what string, done <-chan error) error {
	s.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		s.Fatalf("%s still waits after %v", what, limit)
		return nil
	}
}

func (s *suite) wantClosed(what string, err error) {
	s.Helper()
	if !errors.Is(err, godwit.ErrClosed) {
		s.Errorf("%s: error %v, want one that wraps %v", what, err, godwit.ErrClosed)
	}
}
