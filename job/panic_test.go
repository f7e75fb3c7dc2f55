package job

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// failing is a session that is told why it fails.
type failing struct {
	coord.Session
	told []error
}

func (f *failing) Self() godwit.NodeID     { return 1 }
func (f *failing) Members() []coord.Member { return []coord.Member{{ID: 0}, {ID: 1}} }
func (f *failing) Fail(err error)          { f.told = append(f.told, err) }

func defective(steps []int) int { return steps[len(steps)] }

// Where a task panics in a worker, the other nodes are told which function did, and the panic goes on. The node is lost, so a run with checkpoints goes on.
// Workers that do not panic are left alone.
func TestAPanicOfATaskIsToldToTheOtherNodes(t *testing.T) {
	s := &failing{}
	p := &part{session: s}
	n := make(chan int, 3)
	p.fork(cap(n), func(i int) { n <- i })
	if len(n) != cap(n) || len(s.told) > 0 {
		t.Errorf("%d workers of %d ran, told %v", len(n), cap(n), s.told)
	}
	defer func() {
		if recover() == nil || len(s.told) != 1 || !errors.Is(s.told[0], godwit.ErrPeerLost) || !strings.Contains(s.told[0].Error(), "panic in github.com/godwit-ps/godwit/job.defective (panic_test.go:") {
			t.Errorf("told %v", s.told)
		}
	}()
	p.telling(func() { defective(nil) })
}
