//go:build !unix

package host

import "time"

// ProcessorTime returns 0: the system does not say.
func ProcessorTime() time.Duration { return 0 }
