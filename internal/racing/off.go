//go:build !race

package racing

// Enabled says that the race detector is on.
const Enabled = false
