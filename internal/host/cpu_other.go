//go:build !linux

package host

import "time"

var began = time.Now()

// threadTime is the time on the wall, where the processor time of a thread
// cannot be had.
func threadTime() int64 { return int64(time.Since(began)) }
