package mem

import (
	"errors"
	"testing"

	"github.com/godwit-ps/godwit"
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
