//go:build !linux

package slownet

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
