// Package metrics serves what a node tells of itself (package telemetry) over HTTP, to Prometheus
// and to those who look whether the process is well:
//
//	/metrics   counters and histograms, as Prometheus reads them
//	/healthz   200 while the process lives
//	/readyz    200 from when all nodes have met until the server is closed; before, 503 with the reason
//
// Everything is read at a scrape; between scrapes it costs nothing. No label has a key or the name
// of a key, so the number of series depends on the number of nodes and of tables (at most 128 one by one) alone.
//
// Programs that do not serve metrics need not link it.
package metrics
