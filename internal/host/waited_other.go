//go:build !linux

package host

import "time"

// ProcessorWait returns 0: the system does not say.
func ProcessorWait() time.Duration { return 0 }
