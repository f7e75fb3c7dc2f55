package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
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
		{{interrupt, 0, true}, {interrupt, 0, false}, {interrupt, doubledWithin - 1, false}, {interrupt, 1, true}, {interrupt, time.Hour, true}},
		{{term, 0, true}, {term, 0, false}, {term, time.Second, false}, {term, time.Second, true}},
		{{hup, 0, true}, {term, 1999 * time.Millisecond, false}, {hup, time.Millisecond, true}},
		{{interrupt, 0, true}, {hup, doubledWithin, false}, {interrupt, 0, true}, {term, time.Second, false}, {term, time.Second, true}},
		{{term, time.Second, true}, {interrupt, 0, false}, {interrupt, doubledWithin, true}},
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

// Only a run that keeps nothing says so: a checkpoint keeps the model, too, and another node does not know what the leader keeps.
func TestOnlyARunThatKeepsNothingSaysSo(t *testing.T) {
	t.Parallel()
	const lost = "the model is not kept"
	for _, c := range []struct {
		checkpoint, export string
		lost               bool
	}{{"", "", true}, {"runs", "", false}, {"", "model", false}, {"runs", "model", false}} {
		run := training{spec: job.Spec{Checkpoint: c.checkpoint}}
		run.cluster.node.Export = c.export
		if said, _ := run.kept(); strings.Contains(said, lost) != c.lost {
			t.Errorf("with the checkpoints %q and the export %q it says: %s", c.checkpoint, c.export, said)
		}
	}
	if said := evaluated(""); strings.Contains(said, lost) {
		t.Errorf("another node says: %s", said)
	}
}

// A SIGTERM, and only that, ends a run after a time, whatever it still does.
func TestASIGTERMEndsARunInTime(t *testing.T) {
	defer endedAtOnce.Store(endedAtOnce.Load())
	for _, x := range []struct {
		s    syscall.Signal
		late bool
	}{{syscall.SIGTERM, true}, {syscall.SIGINT, false}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		signals, stopped := make(chan os.Signal, 2), make(chan struct{})
		signals <- x.s
		go watch(new(interruptCount), signals, 10*time.Millisecond, func() { close(stopped) }, cancel)
		<-stopped
		if !x.late {
			time.Sleep(doubledWithin + 10*time.Millisecond) // nothing is to happen
			if ctx.Err() != nil {
				t.Errorf("%v ends the run: %v", x.s, context.Cause(ctx))
			}
			signals <- syscall.SIGINT
		}
		<-ctx.Done()
		if late := errors.Is(context.Cause(ctx), errLate); late != x.late {
			t.Errorf("after %v the run ends with %v", x.s, context.Cause(ctx))
		}
	}
}
