// Command straggle measures what a slow node costs a run. It trains knowledge-graph embeddings on
// several node processes, each held to the same share of a processor, and then again with the last one held to half of that:
// once with the chunks of each epoch leased, and once divided in advance. It prints how long an epoch takes in each, beside the ideal, which
// is what the processors that are left would take.
//
//	go run ./internal/straggle -data fb15k-237
//
// It needs to be root, and Linux's control groups.
package main
