//go:build !unix

package bench

import "time"

// ProcessorTime returns 0: the system does not say.
func ProcessorTime() time.Duration { return 0 }
