package link

import "github.com/godwit-ps/godwit/internal/host"

var frameBytes = host.Usual.Frame

// recordBytes is what a key takes on its way at the most, beside its floats, or while it waits
// somewhere.
const recordBytes = 64

// CostOf returns what a key counts in the limits, of which so many floats travel.
func CostOf(floats int) int64 { return int64(4*floats + recordBytes) }
