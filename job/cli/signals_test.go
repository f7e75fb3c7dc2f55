package cli

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestRepeatedSignalsCountOnce(t *testing.T) {
	t.Parallel()
	const interrupt, term, hup = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP
	type press struct {
		s     os.Signal
		after time.Duration // the one before
		want  bool
	}
	for _, presses := range [][]press{
		{{interrupt, 0, true}, {interrupt, 0, true}, {interrupt, time.Hour, true}},
		{{term, 0, true}, {term, 0, false}, {term, time.Second, false}, {term, time.Second, true}},
		{{hup, 0, true}, {term, 1999 * time.Millisecond, false}, {hup, time.Millisecond, true}},
		{{interrupt, 0, true}, {hup, time.Second, false}, {interrupt, 0, true}, {term, time.Second, false}, {term, time.Second, true}},
		{{term, time.Second, true}, {interrupt, 0, true}},
	} {
		var c interruptCount
		at := time.Now()
		for i, p := range presses {
			at = at.Add(p.after)
			if got := c.count(p.s, at); got != p.want {
				t.Errorf("signal %d of %v counts: %v", i, presses, got)
			}
		}
	}
}
