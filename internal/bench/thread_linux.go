package bench

import "golang.org/x/sys/unix"

// pin keeps the calling thread on the i-th of the processors that it may use,
// so that threads of a turn do not share one.
func pin(i int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() == 0 {
		return
	}
	i %= may.Count()
	for p := range 64 * len(may) {
		if !may.IsSet(p) {
			continue
		}
		if i == 0 {
			var one unix.CPUSet
			one.Set(p)
			_ = unix.SchedSetaffinity(0, &one) // else the thread goes where the system likes
			return
		}
		i--
	}
}

// threadTime returns the processor time that the calling thread has used, in
// nanoseconds.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return t.Nano()
}
