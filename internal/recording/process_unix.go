//go:build unix

package recording

import "golang.org/x/sys/unix"

// processorTime returns the processor time that this process has used, in nanoseconds.
func processorTime() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
