// Package cut is how the rows of a node leave it for a checkpoint ([Rows.Each]), and come back
// from one ([Rows.Restore]).
//
// It owns no lock and no goroutine. It calls the shards, and what takes the rows. It
// never decides about keys, and waits for nothing but what takes them.
package cut
