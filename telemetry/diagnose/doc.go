// Package diagnose finds out what holds up a run: a slow node or link, keys that are announced too
// late or not at all, a hot key, small batches, a machine without memory. It reads nothing but the
// samples of the nodes (package telemetry/record).
//
// [From] puts together what nodes did while they trained, from samples in memory, and [Scan] from files. [Diagnose] is a function of that alone. A run
// that is well has no finding.
package diagnose
