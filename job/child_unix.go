//go:build unix

package job

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a process: the leader gets it, and
// has all nodes end in order.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
