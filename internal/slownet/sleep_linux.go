package slownet

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep blocks the thread, because timers of Go may be a millisecond late.
func sleep(d time.Duration) {
	for t := unix.NsecToTimespec(int64(d)); t.Nano() > 0; {
		var left unix.Timespec
		if unix.Nanosleep(&t, &left) != unix.EINTR {
			return
		}
		t = left
	}
}
