package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// killTimeout is how long after a second interrupt the process ends at the latest.
const killTimeout = 3 * time.Second

// termWithin is how long after SIGTERM a run with checkpoints ends at the latest, but for killTimeout: who sends it kills after 30 s
// mostly.
const termWithin = 22 * time.Second

// repeatWithin is how long a SIGTERM or SIGHUP after an interrupt counts as the
// same one. Who sends them sends several: GNU timeout signals its child and then
// its group, and a terminal that closes signals by the shell and by the kernel.
const repeatWithin = 2 * time.Second

// doubledWithin is the same of a SIGINT. A Ctrl-C comes twice where a program between, in the same terminal, passes on its own;
// "timeout -s INT" signals twice, too. A person who presses again takes longer.
const doubledWithin = 200 * time.Millisecond

// evaluated is what an interrupt does to a run of this process that has this --export.
func evaluated(export string) string {
	if export == "" {
		return "the model is evaluated as it is"
	}
	return "the model is evaluated and exported as it is"
}

// endedAtOnce is set by the second interrupt, before it cancels anything.
var endedAtOnce atomic.Bool

// errLate is the cause of the end of a run that took too long to end in order.
var errLate = fmt.Errorf("SIGTERM came %v ago", termWithin)

// An interruptCount counts the interrupts of this process.
type interruptCount struct {
	n    int
	last time.Time // when the last one came that counted
}

// count counts a signal that came at a time, and returns whether it is a new interrupt.
func (c *interruptCount) count(s os.Signal, at time.Time) bool {
	same := repeatWithin
	if s == os.Interrupt {
		same = doubledWithin
	}
	if c.n > 0 && at.Sub(c.last) < same {
		return false
	}
	c.n++
	c.last = at
	return true
}

// ends are the signals that end a run in order. SIGHUP is none if it was ignored
// when the process began, which is what nohup does.
func ends() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}

// interrupts returns a channel that the first SIGINT, SIGTERM or SIGHUP closes, and
// a context that the second one ends. The third, or time, ends the process. From
// then on this process outlives its terminal: writing to it fails, and no more.
// After a SIGTERM the context also ends after a time, unless that is 0.
func interrupts(kept string, within time.Duration) (stop <-chan struct{}, ctx context.Context) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, ends()...)
	// With a SIGPIPE that is asked for, a write to a closed stdout or stderr
	// returns an error; without, it ends the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stopping := make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { // for the life of the process
		var c interruptCount
		watch(&c, signals, within, func() {
			close(stopping)
			complain(slog.LevelInfo, "stopping: %s; interrupt again to end at once", kept)
		}, cancel)
		await(&c, signals, time.After(killTimeout))
		os.Exit(Interrupted)
	}()
	return stopping, ctx
}

// watch calls stop at the first interrupt, and cancel at the second one. After a SIGTERM it calls cancel after a time, too, unless that
// is 0.
func watch(c *interruptCount, signals <-chan os.Signal, within time.Duration, stop func(), cancel context.CancelCauseFunc) {
	var late <-chan time.Time
	if s := await(c, signals, nil); s == syscall.SIGTERM && within > 0 {
		late = time.After(within)
	}
	stop()
	again := await(c, signals, late)
	endedAtOnce.Store(true)
	if again == nil {
		cancel(errLate)
		return
	}
	complain(slog.LevelWarn, "interrupted again: ending at once")
	cancel(errors.New("interrupted twice"))
}

// await returns the next interrupt that counts, or nil at a time.
func await(c *interruptCount, signals <-chan os.Signal, until <-chan time.Time) os.Signal {
	for {
		select {
		case s := <-signals:
			if c.count(s, time.Now()) {
				return s
			}
		case <-until:
			return nil
		}
	}
}

// UntilInterrupted returns a context that the first interrupt ends: for work
// that tells what it has done so far when its context ends.
func UntilInterrupted() (context.Context, context.CancelFunc) {
	stop, ctx := interrupts("what is done so far is printed", 0)
	ctx, cancel := context.WithCancel(ctx)
	go func() { // until the context ends
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
