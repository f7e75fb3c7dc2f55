// Package transport carries opaque frames between the nodes of a run.
//
// A [Conn] is a two-way stream of frames to one peer: whole, in order, each
// once, or not at all and then none after it. A [Network] makes connections;
// there is one over sockets (package tcp, with TLS where asked for) and one
// within a process (package mem), and both pass package transporttest. [Mesh]
// connects a node to all others.
//
// Of a frame a transport knows the length, which stands in its first 4 bytes
// (wire.FrameLen), and nothing else.
//
// # How a connection begins
//
// Both sides prove to each other that they are members of the run, which is to
// know its secret, before the listening side says anything of itself:
//
//	both       nonce          32 random bytes
//	dialer     hello, proof   of the two nonces and its hello
//	listener   hello, proof   of the two nonces and both hellos
//	dialer     proof          of the same, and the connection is made
//
// A proof is an HMAC-SHA256 with the secret as its key; it also contains which of
// the three it is. So a proof is good for one place on one connection, and what
// was recorded elsewhere, or is sent back, proves nothing. A frame's header tells the
// version of the protocol, so that nodes of different releases can say so. A
// dialer that proves nothing within seconds is dropped, and was sent a random number.
//
// A listener runs the handshakes of several connections at a time, so that a dialer
// that sends nothing delays nobody. The number of pending handshakes is bounded; if
// the bound is reached, a new connection displaces the oldest one of the address that
// has the most. A member's connection is pending only until it has proved itself: it
// is accepted however many others connect.
//
// The last proof says that the dialer has taken the connection for made. A
// listener hands out no connection without it: a dialer that gave up or stopped
// before leaves nothing behind.
//
// A network passes on every hello that is well formed and proved. [Verify],
// which Mesh calls, decides whether it is the right one.
//
// # How one ends
//
// Close ends both directions at once. The peer reads what was written before
// and then io.EOF, unless the closing side had frames left to read: then the
// network may throw away what was on its way. A side that must know that
// everything arrived asks for it in a frame and waits for the answer.
package transport

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/godwit-ps/godwit/internal/wire"
)

// A Hello is what each side of a new connection says of itself: the run, which node
// it is and whom it believes to speak to, which process, the model, and what it
// understands.
type Hello = wire.Hello

// A Conn is a connection to one peer. One goroutine at a time may write,
// another one read, and any close it, all at the same time.
type Conn interface {
	// WriteFrame sends one frame. It returns when the network has taken it,
	// not when it has arrived; while the network is full it waits. The frame
	// may be reused afterwards. It refuses, before sending anything, a frame
	// that is not as long as it says. After any other error the connection is
	// of no more use.
	WriteFrame(frame []byte) error

	// TryFrame sends one frame if that needs no wait, and reports whether it
	// did. If it did not, it may have sent a part, and WriteFrame must be called
	// next with the same frame, to send what is missing. Errors are those of
	// WriteFrame.
	TryFrame(frame []byte) (sent bool, err error)

	// ReadFrame waits for the next frame and returns it. It begins at a
	// multiple of 8 and is the caller's, to change too, until the next call. The
	// memory that a frame takes is in proportion to what has arrived of it,
	// whatever length it claims. The error is io.EOF when the peer has closed
	// the connection between two frames.
	ReadFrame() ([]byte, error)

	// Ready reports whether a whole frame has been read ahead: the next
	// ReadFrame will not wait. It is for the goroutine that reads.
	Ready() bool

	// Close ends the connection. A ReadFrame or WriteFrame that waits, and
	// every later one, returns an error that wraps godwit.ErrClosed. Closing
	// twice is harmless.
	Close() error

	// Peer returns what the other side said of itself.
	Peer() Hello
}

// An InlineReader is a Conn that lets a goroutine that waits for an answer read it
// itself, instead of being woken by the one that serves the connection. To wake a
// goroutine on another processor takes nearly as long as an exchange over a fast
// network.
//
// Not every Conn is one; see [Serve].
type InlineReader interface {
	Conn

	// Serve waits for frames and calls take with each, as ReadFrame gives them,
	// until the connection ends, whose error it returns, or take returns false.
	// One goroutine calls it, once; from then on nobody calls ReadFrame. Ready is
	// for take to call.
	Serve(take func(frame []byte) bool) error

	// ReadInline calls send, which asks for something, and then does the work of
	// Serve on the caller's goroutine until done holds a token, which it leaves
	// there, for timeout or twice that at the most, and then until no whole frame
	// has been read ahead. It only calls send if another goroutine reads inline, and
	// returns when the connection ends; Serve returns the error. The frames of a
	// connection are handled one after the other, whoever reads them.
	ReadInline(send func(), done <-chan struct{}, timeout time.Duration)

	// Poll does the work of Serve on the caller's goroutine for what has arrived, and waits
	// for nothing. It does nothing if another goroutine reads.
	Poll()

	// Interrupt ends a wait of ReadInline. Any goroutine may call it; if none waits,
	// it may end the next wait instead.
	Interrupt()
}

// A Meter is a Conn that knows how many bytes have arrived, those of a frame that
// is not whole yet as well. Any goroutine may ask.
type Meter interface {
	// Arrived counts from the beginning of the connection.
	Arrived() uint64
}

// A Pacer is a Conn of which the system may know how fast the network takes what is written. Any
// goroutine may ask.
type Pacer interface {
	// Pace returns how many bytes a second the network has taken lately, while there was something to
	// send; 0: that is not known, such as when the peer had no room since the last call. And it returns what Unsent does.
	Pace() (bytesPerSecond uint64, unsent int)
	// Unsent returns how many bytes the system has taken and not sent yet; 0: none, or that is not known.
	Unsent() int
}

// Serve is Serve of a [InlineReader], and of any other Conn as well.
func Serve(c Conn, take func(frame []byte) bool) error {
	if s, ok := c.(InlineReader); ok {
		return s.Serve(take)
	}
	return Each(c, take)
}

// Each reads frame after frame and calls take with each, until the connection
// ends, whose error it returns, or take returns false.
func Each(c Conn, take func(frame []byte) bool) error {
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return err
		}
		if !take(frame) {
			return nil
		}
	}
}

// A Network makes connections. Any number of goroutines may use it.
type Network interface {
	// Listen begins to take connections at addr.
	Listen(addr string) (Listener, error)

	// Dial connects to the listener at addr and exchanges hellos and proofs with
	// the secret of the run. It returns within seconds, or earlier when ctx ends.
	// An error of the other side or of the way there is a [*DialError], which
	// wraps a [*Mismatch] if somebody is there but can never be a peer; others may
	// pass.
	Dial(ctx context.Context, addr string, hello Hello, secret []byte) (Conn, error)
}

// MinSecret is the least length in bytes of the secret of a run.
const MinSecret = 16

// CheckSecret returns an error if a secret is too short to be one.
func CheckSecret(secret []byte) error {
	if len(secret) < MinSecret {
		return fmt.Errorf("transport: the run's secret has %d bytes, want at least %d: without one, members cannot be told from strangers", len(secret), MinSecret)
	}
	return nil
}

// A DialError says why a peer could not be reached, and at which address.
type DialError struct {
	Network, Addr string // such as "tcp", and the address that was dialed
	Err           error  // why
}

func (e *DialError) Error() string { return fmt.Sprintf("%s: dial %s: %v", e.Network, e.Addr, e.Err) }
func (e *DialError) Unwrap() error { return e.Err }

// A Listener takes connections. Any number of goroutines may use it.
type Listener interface {
	// Addr returns the address at which it can be dialed.
	Addr() string

	// Accept waits for the next peer that knows the secret of the run, was
	// answered with self (To becomes whoever dialed) and has confirmed, and returns
	// the connection. Every call brings the same self and secret: until the first
	// nobody is answered, and from then on peers are answered between calls, too.
	// It fails only when ctx ends, the listener is closed (godwit.ErrClosed), or
	// self or secret cannot be used.
	Accept(ctx context.Context, self Hello, secret []byte) (Conn, error)

	// Close drops everybody who was not accepted yet and returns when nothing
	// of the listener is left running. Accepted connections live on.
	Close() error
}

// align is what a frame's address is a multiple of, so that numbers of up to 8
// bytes can be read where they lie.
const align = 8

// Room returns a slice of length n that begins at a multiple of 8, in the
// memory of buf where that will do and else in new one. The content is
// undefined. What is read into has such memory.
func Room(buf []byte, n int) []byte {
	if cap(buf) >= n && uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%align == 0 {
		return buf[:n]
	}
	return make([]byte, n, max(n, 2*align)) // very small allocations may lie anywhere
}
