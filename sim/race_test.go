//go:build race

package sim

// racing says that the race detector is on: simulations take ten times as long or more, and one goroutine of each runs at a time.
const racing = true
