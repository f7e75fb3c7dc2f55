//go:build race

package trace

// race says that the race detector is on: it takes many times the time.
const race = true
