// Package events runs commands that train, and hears what they print with --json.
package events

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-ps/godwit/job"
)

// Run runs a command, with more in its environment, and hears the events that it prints,
// until it ends. When the context ends, or hear returns an error, the command is asked to
// end, and killed a minute later. An error has what the command wrote to its standard error.
func Run(ctx context.Context, binary string, args, env []string, hear func(*job.Event) error) error {
	return run(ctx, time.Minute, binary, args, env, hear)
}

// run is Run with a patience of one's own with a command that was asked to end.
func run(ctx context.Context, patience time.Duration, binary string, args, env []string, hear func(*job.Event) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var rest sync.WaitGroup
	if err = Read(out, hear); err != nil {
		end() // its nodes end with it; it may have ended
		rest.Go(func() { _, _ = io.Copy(io.Discard, out) })
	}
	werr := cmd.Wait()
	rest.Wait()
	if werr != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", args[0], werr, bytes.TrimSpace(said.Bytes())))
	}
	return err
}

// Read hears events, one a line, to their end or until hear returns an error.
func Read(r io.Reader, hear func(*job.Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e job.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%w in the line %.200q", err, lines.Bytes())
		}
		if err := hear(&e); err != nil {
			return err
		}
	}
	return lines.Err()
}
