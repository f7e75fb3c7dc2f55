package tcp

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// read returns a stream to a peer that waits after each read.
func read(t *testing.T, wait time.Duration) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		there, err := l.Accept()
		if err != nil {
			return
		}
		defer there.Close()
		b := make([]byte, 16<<10)
		for _, err = there.Read(b); err == nil; _, err = there.Read(b) {
			time.Sleep(wait)
		}
	}()
	stream, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.Close() })
	return stream
}

// A peer that reads slowly is no slow network.
func TestOnlyTheNetworkHasAPace(t *testing.T) {
	c := newConn(read(t, 0))
	var rate uint64
	for i := 0; rate == 0 && i < 400; i++ { // a peer that does not get to read has no room, for a while
		if _, err := c.stream.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		rate, _ = c.Pace()
	}
	if rate == 0 {
		t.Skip("this system does not say")
	}
	c = newConn(read(t, 20*time.Millisecond))
	b := make([]byte, 64<<20) // far more than is taken
	for end := time.Now().Add(time.Minute); c.Unsent() == 0 || c.pace.info.Rwnd_limited == 0; {
		if time.Now().After(end) {
			t.Fatal("everything was sent to a peer that has no room")
		}
		if err := c.stream.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.stream.Write(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a write to a peer that has no room: %v", err)
		}
	}
	if rate, unsent := c.Pace(); rate != 0 || unsent == 0 {
		t.Errorf("a peer that has no room takes %d bytes a second, and %d were not sent", rate, unsent)
	}
	x := newConn(struct{ net.Conn }{read(t, 0)})
	if rate, unsent := x.Pace(); rate != 0 || unsent != 0 || x.Unsent() != 0 {
		t.Error("a stream that is no socket has a pace")
	}
}
