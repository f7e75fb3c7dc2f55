//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// wholeGroup has a command that is ended take the processes with it that it started.
func wholeGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
