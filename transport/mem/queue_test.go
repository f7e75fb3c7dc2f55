package mem

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/transport"
)

// Buffers of frames that were read are used for those to come.
func TestAQueueUsesItsBuffersAgain(t *testing.T) {
	q := newQueue()
	turn := func() {
		for range 3 {
			if ok, err := q.put(make([]byte, 8), false); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		for range 3 {
			if _, err := q.take(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		turn()
	}
	if n := len(q.free); n > 3 {
		t.Errorf("%d buffers are free, want 3 at the most", n)
	}
}

func TestNothingIsPutIntoAQueueThatEnded(t *testing.T) {
	for _, x := range []struct {
		end  func(*queue)
		want error
	}{{(*queue).closeWriter, godwit.ErrClosed}, {(*queue).closeReader, errPeerClosed}} {
		q := newQueue()
		x.end(q)
		if ok, err := q.put(make([]byte, 8), false); ok || !errors.Is(err, x.want) {
			t.Errorf("put: %v, %v, want %v", ok, err, x.want)
		}
	}
}

// What would not go over a wire is refused here, too.
func TestAHelloAndASecretThatNobodyCouldSendAreRefused(t *testing.T) {
	secret := make([]byte, transport.MinSecret)
	for what, x := range map[string]struct {
		hello  transport.Hello
		secret []byte
		ok     bool
	}{
		"good":         {transport.Hello{Run: "r"}, secret, true},
		"long name":    {transport.Hello{Run: strings.Repeat("r", 1000)}, secret, false},
		"short secret": {transport.Hello{Run: "r"}, secret[1:], false},
	} {
		if err := check(x.hello, x.secret); (err == nil) != x.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
