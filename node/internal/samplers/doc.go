// Package samplers is the samplers of a worker, by the number and the ids that the program knows them by.
//
// It owns [Samplers], which belong to the worker's goroutine; only their counts may be read by others. It
// has no lock and no goroutine.
//
// It calls package sampling, which reads and announces keys by the worker. It never touches a row, never
// sends, and decides nothing about keys.
package samplers
