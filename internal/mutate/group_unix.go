//go:build unix

package main

import (
	"context"
	"os/exec"
	"syscall"
)

// memory is how many KiB of data a process may have: mutants may take all there is.
const memory = "6291456"

// command makes a command that takes the processes with it that it started, where it
// is ended, and that ends when it takes too much memory.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `ulimit -d ` + memory + `; exec "$0" "$@"`, path}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
