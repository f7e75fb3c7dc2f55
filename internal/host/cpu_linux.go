package host

import "golang.org/x/sys/unix"

// threadTime returns the processor time that the calling thread has used, in
// nanoseconds. Unlike the clock on the wall it does not count the time in which
// others ran.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return t.Nano()
}
