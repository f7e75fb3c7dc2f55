// Package telemetry is what a node tells of itself while it runs: a [Snapshot], taken whenever
// somebody asks. It has no code of any monitoring system; package telemetry/metrics makes
// Prometheus metrics of a Snapshot, and package telemetry/trace has the life of single keys.
package telemetry
