package pending

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
)

func TestTheOldestFromWhereMostAreMakesRoom(t *testing.T) {
	const all, ofOne = 512, 256 // as docs/guarantees.md says
	var w Set
	order := 0
	dropped := map[string]int{} // when
	enter := func(host, name string) *Conn {
		var s *Conn
		entered := make(chan struct{})
		s = w.Add(&net.TCPAddr{IP: net.ParseIP(host)}, func(error) {
			order++
			dropped[name] = order
			go func() { <-entered; w.Remove(s) }()
		})
		close(entered)
		return s
	}
	for i := range ofOne {
		enter("10.0.0.1", fmt.Sprint("a", i))
	}
	enter("10.0.0.1", "a-more")
	if dropped["a0"] != 1 || order != 1 {
		t.Errorf("%d strangers were dropped when one address had too many: %v", order, dropped)
	}
	member := enter("10.0.0.2", "member")
	for i := range all - ofOne - 1 {
		enter(fmt.Sprintf("10.1.%d.%d", i/250, i%250), "c")
	}
	if order != 1 {
		t.Fatalf("strangers were dropped though there was room: %v", dropped)
	}
	for i := range 3 {
		enter("10.0.0.3", fmt.Sprint("d", i))
		if name := fmt.Sprint("a", 1+i); dropped[name] != 2+i {
			t.Errorf("%s was not dropped next: %v", name, dropped)
		}
	}
	w.Remove(member)
	w.Remove(member) // twice is harmless
	if enter("10.0.0.3", "d"); order != 4 || w.Len() != all {
		t.Errorf("who left kept a place: %d dropped, %d of %d places taken", order, w.Len(), all)
	}
}

// Of origins that each have one, one makes room all the same; and of those that left, nothing is kept.
func TestManyOriginsOfOneConnectionEach(t *testing.T) {
	var w Set
	conns, dropped := map[*Conn]bool{}, 0
	for i := range Max + 3 {
		var s *Conn
		entered := make(chan struct{})
		s = w.Add(&net.TCPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i))}, func(err error) {
			if err == nil {
				t.Error("a connection was dropped without a cause")
			}
			dropped++
			go func() { <-entered; w.Remove(s) }()
		})
		conns[s] = true
		close(entered)
	}
	if dropped != 3 || w.Len() != Max {
		t.Errorf("%d were dropped, want 3; %d are there", dropped, w.Len())
	}
	for s := range conns {
		w.Remove(s)
	}
	if w.Len() != 0 || len(w.from) != 0 {
		t.Errorf("when all have left, %d are there, and %d origins", w.Len(), len(w.from))
	}
}

// A process that has too many files open gets one back, if there is a connection to drop.
func TestAConnectionIsDroppedForWantOfFiles(t *testing.T) {
	var w Set
	full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	if w.Relieve(full) {
		t.Error("relieved, without a connection to drop")
	}
	var order []string
	add := func(host, name string) {
		var s *Conn
		s = w.Add(&net.TCPAddr{IP: net.ParseIP(host)}, func(error) {
			order = append(order, name)
			go w.Remove(s)
		})
	}
	add("10.0.0.1", "a")
	add("10.0.0.2", "b")
	add("10.0.0.2", "c")
	if w.Relieve(net.ErrClosed) || len(order) > 0 {
		t.Errorf("dropped %v for another error", order)
	}
	if !w.Relieve(full) || !w.Relieve(syscall.ENFILE) || w.Len() != 1 || order[0] != "b" {
		t.Errorf("dropped %v, and %d are left", order, w.Len())
	}
}

func TestAnIPv6NetworkIsOneOrigin(t *testing.T) {
	at := func(addr string) netip.Prefix {
		return origin(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1:1", "10.0.0.1:2", true},
		{"10.0.0.1:1", "10.0.0.2:1", false},
		{"[::ffff:10.0.0.1]:1", "10.0.0.1:1", true},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2%eth0]:1", true},
	} {
		if got := at(c.a) == at(c.b); got != c.same {
			t.Errorf("%s and %s: one origin is %v, want %v", c.a, c.b, got, c.same)
		}
	}
}
