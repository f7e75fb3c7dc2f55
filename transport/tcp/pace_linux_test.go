package tcp

import (
	"net"
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
	for range 20 {
		if _, err := c.stream.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if rate, _ := c.Pace(); rate == 0 {
		t.Skip("this system does not say")
	}
	c = newConn(read(t, 20*time.Millisecond))
	if err := c.stream.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if sent, _ := c.stream.Write(make([]byte, 64<<20)); sent == 0 { // far more than is taken until the deadline
		t.Fatal("nothing was sent")
	}
	if c.Unsent() == 0 {
		t.Error("everything was sent to a peer that has no room")
	}
	if rate, unsent := c.Pace(); rate != 0 || unsent == 0 {
		t.Errorf("a peer that has no room takes %d bytes a second, and %d were not sent", rate, unsent)
	}
	x := newConn(struct{ net.Conn }{read(t, 0)})
	if rate, unsent := x.Pace(); rate != 0 || unsent != 0 || x.Unsent() != 0 {
		t.Error("a stream that is no socket has a pace")
	}
}
