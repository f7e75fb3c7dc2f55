//go:build race

package node

// race says that the race detector is on: it takes many times the memory and the time.
const race = true
