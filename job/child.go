package job

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
)

// Children are the processes that a Leader started. Each has a goroutine that copies
// its stderr and then waits for its end.
type children struct {
	out io.Writer // gets their stderr, a line at a time
	mu  sync.Mutex
	wg  sync.WaitGroup

	// Guarded by mu, but err may be read once failed is closed.
	procs  []*exec.Cmd
	killed bool          // ends of processes are no errors any more
	err    error         // the error of the first process that failed
	failed chan struct{} // closed when err is set
}

func newChildren(out io.Writer) *children {
	return &children{out: out, failed: make(chan struct{})}
}

// start starts a process, with this one's environment and a variable more.
func (c *children) start(command []string, variable string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), variable)
	detach(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	// Nothing is written there: it ends with this process, however that ends.
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("job: start a node: the run was ended")
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("job: start a node: %w", err)
	}
	c.procs = append(c.procs, cmd)
	name := fmt.Sprintf("node process %d", cmd.Process.Pid)
	c.wg.Go(func() {
		last := c.copyLines(name, stderr)
		err := cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.killed || c.err != nil || err == nil || exitCode(err) == exitInterrupted {
			return
		}
		c.err = fmt.Errorf("job: %w: %s ended: %w", godwit.ErrPeerLost, name, err)
		if last != "" {
			c.err = fmt.Errorf("%w: %s", c.err, last)
		}
		close(c.failed)
	})
	return nil
}

// exitInterrupted is the exit code of a node that ended after an interrupt.
const exitInterrupted = 130

func exitCode(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

// logged begins a message that package log/slog wrote as JSON. It names its node itself.
const logged = `{"time":"`

// maxLine is how many bytes of a line are copied.
const maxLine = 64 << 10

// copyLines copies lines, with the name before each but messages that are JSON, and returns the last one. Of a line longer than maxLine it
// copies the begin.
func (c *children) copyLines(name string, r io.Reader) (last string) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		b, more, err := lines.ReadLine()
		if err != nil {
			return last // a read error is the end of the process
		}
		last = string(b)
		if more {
			last += " …"
		}
		for more && err == nil {
			_, more, err = lines.ReadLine()
		}
		c.mu.Lock()
		if strings.HasPrefix(last, logged) {
			fmt.Fprintln(c.out, last)
		} else {
			fmt.Fprintf(c.out, "%s: %s\n", name, last)
		}
		c.mu.Unlock()
	}
}

// end waits for all processes to end by themselves and kills those that have not after
// the timeout. It returns when none is left, with the error of the first that failed
// by itself.
func (c *children) end(timeout time.Duration) error {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		c.kill()
		<-done
	}
	return c.err
}

// kill ends all processes at once.
func (c *children) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	for _, p := range c.procs {
		_ = p.Process.Kill() // an error says that it has ended
	}
}
