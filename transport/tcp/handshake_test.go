package tcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// self is what the listeners of these tests say of themselves.
var self = transport.Hello{Run: "run-a", From: 0, Incarnation: 7, Fingerprint: "model-a"}

// accepting has a listener accept whoever proves to be a member.
func accepting(t *testing.T) (l transport.Listener, accepted <-chan transport.Conn) {
	t.Helper()
	l, err := Network{timeout: limit}.Listen(anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan transport.Conn, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept(ctx, self, secret)
			if err != nil {
				return
			}
			out <- c
		}
	}()
	t.Cleanup(func() {
		cancel()
		l.Close()
		<-done
		close(out)
		for c := range out {
			c.Close()
		}
	})
	return l, out
}

// helloOf returns the frame of what node 1 says of itself.
func helloOf(t *testing.T) []byte {
	t.Helper()
	b, err := wire.AppendHello(nil, transport.Hello{Run: "run-a", From: 1, To: 0, Incarnation: 8, Fingerprint: "model-a"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A tap is a network whose connections can be listened to and changed.
type tap struct {
	addr     string
	up, down bytes.Buffer // what the last connection's dialer and listener said; read once it has ended
	ended    chan struct{}
}

// tapped returns a way to a listener. Each of the dialer's frames passes through
// edit, with its number and what the listener has said so far; nil passes none.
func tapped(t *testing.T, addr string, edit func(n int, frame, heard []byte) []byte) *tap {
	t.Helper()
	ln, err := net.Listen("tcp", anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{addr: ln.Addr().String(), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		from, err := ln.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		to, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer to.Close()
		heard := make(chan []byte, 16) // frames of the listener
		go func() {
			defer close(heard)
			r := newFrameReader(to, firstRoom)
			for {
				f, err := r.next(wire.MaxHello)
				if err != nil {
					from.(*net.TCPConn).CloseWrite()
					return
				}
				heard <- slices.Clone(f)
				from.Write(f)
			}
		}()
		r := newFrameReader(from, firstRoom)
		wants := []int{1, 0, 0, 2} // frames of the listener before each of the dialer's is passed on
		for n := 0; n < len(wants); n++ {
			f, err := r.next(wire.MaxHello)
			if err != nil {
				break
			}
			for range wants[n] {
				b, ok := <-heard
				if !ok {
					return
				}
				p.down.Write(b)
			}
			f = edit(n, slices.Clone(f), p.down.Bytes())
			p.up.Write(f)
			to.Write(f)
		}
		io.Copy(io.Discard, from)
	}()
	t.Cleanup(func() { ln.Close(); <-p.ended })
	return p
}

// told sends bytes to a listener and returns all that it answers until it hangs up.
func told(t *testing.T, addr string, say ...[]byte) []byte {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(limit))
	if _, err := c.Write(slices.Concat(say...)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		var op *net.OpError
		if !errors.As(err, &op) || op.Timeout() {
			t.Fatalf("the listener did not hang up: %v", err)
		}
	}
	return b
}

func TestWhoDoesNotProveItselfIsToldARandomNumberAndNothingElse(t *testing.T) {
	l, accepted := accepting(t)
	hello := helloOf(t)
	// A member's connection, as somebody hears it on the way.
	tap := tapped(t, l.Addr(), func(_ int, f, _ []byte) []byte { return f })
	c, err := Network{timeout: limit}.Dial(t.Context(), tap.addr, transport.Hello{Run: "run-a", From: 1, To: 0, Incarnation: 8, Fingerprint: "model-a"}, secret)
	if err != nil {
		t.Fatal(err)
	}
	(<-accepted).Close()
	c.Close()
	<-tap.ended
	recorded := tap.up.Bytes()
	proofs := bytes.Clone(recorded[len(nonce())+len(hello):][:len(nonce())])
	for what, say := range map[string][]byte{
		"nothing":                                nil,
		"a hello":                                hello,
		"a nonce":                                nonce(),
		"a nonce and a hello":                    slices.Concat(nonce(), hello),
		"a proof with another secret":            slices.Concat(nonce(), hello, wire.AppendProof(nil, prove([]byte("what another run knows"), dials, slices.Concat(nonce(), hello)))),
		"a proof of nothing":                     slices.Concat(nonce(), hello, wire.AppendProof(nil, wire.Proof{})),
		"all that a member said before":          recorded,
		"a member's proof under another hello":   slices.Concat(recorded[:len(nonce())], hello, proofs),
		"a member's hello under another nonce":   slices.Concat(nonce(), recorded[len(nonce()):]),
		"all that the listener said to a member": tap.down.Bytes(),
	} {
		answer := told(t, l.Addr(), say)
		if _, err := wire.ParseNonce(answer); err != nil {
			t.Errorf("who says %s is told %d bytes that are not one nonce: %v", what, len(answer), err)
		}
		if bytes.Contains(answer, []byte("run-a")) || bytes.Contains(answer, []byte("model-a")) {
			t.Errorf("who says %s is told about the run", what)
		}
	}
	select {
	case <-accepted:
		t.Error("a stranger was accepted")
	default:
	}
}

// Who sends a member its own words back, or words of an earlier connection, is no
// member.
func TestADialerIsNotFooledByItsOwnWordsOrOldOnes(t *testing.T) {
	l, accepted := accepting(t)
	tap := tapped(t, l.Addr(), func(_ int, f, _ []byte) []byte { return f })
	hello := transport.Hello{Run: "run-a", From: 1, To: 0}
	c, err := Network{timeout: limit}.Dial(t.Context(), tap.addr, hello, secret)
	if err != nil {
		t.Fatal(err)
	}
	(<-accepted).Close()
	c.Close()
	<-tap.ended
	echoing, err := net.Listen("tcp", anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer echoing.Close()
	go func() {
		for {
			c, err := echoing.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	for what, addr := range map[string]string{"its own words": echoing.Addr().String(), "old ones": answering(t, tap.down.Bytes())} {
		_, err := Network{timeout: limit}.Dial(t.Context(), addr, hello, secret)
		var m *transport.Mismatch
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want a Mismatch about the secret", what, err)
		}
	}
}

// A change of any byte on the way, or a listener's proof in the place of the
// dialer's last, makes no connection.
func TestWhatIsChangedOnTheWayMakesNoConnection(t *testing.T) {
	frames := 4 // of a dialer: nonce, hello, proof, proof
	for n := range frames {
		for _, at := range []int{wire.HeaderLen, -1} {
			l, accepted := accepting(t)
			tap := tapped(t, l.Addr(), func(i int, f, _ []byte) []byte {
				if i == n {
					f[(at+len(f))%len(f)] ^= 1
				}
				return f
			})
			expectNone(t, tap, l, accepted, n)
		}
	}
	l, accepted := accepting(t)
	tap := tapped(t, l.Addr(), func(i int, f, heard []byte) []byte {
		if i == frames-1 {
			return bytes.Clone(heard[len(heard)-len(f):]) // the listener's own proof
		}
		return f
	})
	expectNone(t, tap, l, accepted, frames)
}

// expectNone dials and expects that the listener accepts nobody.
func expectNone(t *testing.T, tap *tap, l transport.Listener, accepted <-chan transport.Conn, n int) {
	t.Helper()
	c, err := Network{timeout: limit}.Dial(t.Context(), tap.addr, transport.Hello{Run: "run-a", From: 1, To: 0}, secret)
	if err == nil { // only the last frame can be changed without the dialer's knowing
		if _, err := c.ReadFrame(); err == nil {
			t.Errorf("frame %d: the connection works", n)
		}
		c.Close()
	}
	<-tap.ended
	l.Close() // returns when it has heard all
	select {
	case <-accepted:
		t.Errorf("frame %d: the listener accepted what was changed on the way", n)
	default:
	}
}

// A listener that accepted who has not confirmed would be left with a connection
// that nobody holds at the other end.
func TestOnlyWhoConfirmsIsAccepted(t *testing.T) {
	l, accepted := accepting(t)
	meet := func() (*conn, []byte) {
		raw, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(raw)
		t.Cleanup(func() { c.Close() })
		confirm, err := c.dialed(helloOf(t), secret)
		if err != nil {
			t.Fatal(err)
		}
		return c, confirm
	}
	meet()                  // who stops here is there all the time
	gone, _ := meet()       // who gives up here
	gone.Close()            // … was never connected
	slow, confirm := meet() // and who is slow
	time.Sleep(hasty / 5)   // … is waited for,
	other, its := meet()    // which holds up nobody
	other.stream.Write(its) //
	first := await(t, accepted)
	slow.stream.Write(confirm)
	second := await(t, accepted)
	for i, c := range []transport.Conn{first, second} {
		end := []*conn{other, slow}[i]
		if err := end.WriteFrame(sized(100 + i)); err != nil {
			t.Fatal(err)
		}
		if f, err := c.ReadFrame(); err != nil || len(f) != 100+i {
			t.Errorf("connection %d: %d bytes, %v; it is another one", i, len(f), err)
		}
		c.Close()
	}
	select {
	case <-accepted:
		t.Error("one who did not confirm was accepted")
	default:
	}
}

func await(t *testing.T, accepted <-chan transport.Conn) transport.Conn {
	t.Helper()
	select {
	case c := <-accepted:
		return c
	case <-time.After(limit):
		t.Fatal("nobody was accepted")
		return nil
	}
}

// A fed stream reads what it was given and takes what is written.
type fed struct {
	net.Conn
	r *bytes.Reader
}

func (f fed) Read(b []byte) (int, error)  { return f.r.Read(b) }
func (f fed) Write(b []byte) (int, error) { return len(b), nil }

// FuzzHandshake gives any bytes to both sides of a handshake: neither takes them
// for a member.
func FuzzHandshake(f *testing.F) {
	hello, _ := wire.AppendHello(nil, self)
	f.Add(slices.Concat(nonce(), hello, wire.AppendProof(nil, wire.Proof{1})))
	f.Add(slices.Concat(nonce(), nonce()))
	f.Add(hello)
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newConn(fed{r: bytes.NewReader(b)})
		if said, proof, err := c.readHello(); err == nil && proves(proof, secret, dials, said) {
			t.Fatal("a listener takes these bytes for a member")
		}
		if len(c.r.buf) > 2*wire.MaxHello {
			t.Fatalf("a stranger took %d bytes of memory", len(c.r.buf))
		}
		if _, err := newConn(fed{r: bytes.NewReader(b)}).dialed(hello, secret); err == nil {
			t.Fatal("a dialer takes these bytes for a member")
		}
	})
}
