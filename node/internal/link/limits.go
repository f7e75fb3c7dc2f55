package link

import "github.com/godwit-ps/godwit/internal/host"

// frameBytes is the usual length of a full frame.
var frameBytes = host.Usual.Frame

// recordBytes is what a key takes on its way at the most, beside its floats, or while it waits
// somewhere.
const recordBytes = 64

// CostOf returns the bytes that a key of which so many floats travel counts in the limits.
func CostOf(floats int) int64 { return costOf(1, floats) }

// costOf is CostOf of several keys that have so many floats together.
func costOf(keys, floats int) int64 { return int64(4*floats + recordBytes*keys) }
