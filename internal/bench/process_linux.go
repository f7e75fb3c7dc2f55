package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTimeOf returns the processor time that a process has used, without that of
// its children.
func ProcessorTimeOf(pid int) (time.Duration, error) {
	// The id of the clock of a process, as clock_getcpuclockid(3) makes it.
	const scheduled = 2
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &t)
	return time.Duration(t.Nano()), err
}
