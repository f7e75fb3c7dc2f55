//go:build race

// Package racing says whether the race detector is on. It takes up to thirty times the time and the memory, and
// looks at each access: tests that repeat much for other reasons do less under it.
package racing

// Enabled says that the race detector is on.
const Enabled = true
