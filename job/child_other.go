//go:build !unix

package job

import "os/exec"

// detach has nothing to do where terminals do not signal groups of processes.
func detach(*exec.Cmd) {}
