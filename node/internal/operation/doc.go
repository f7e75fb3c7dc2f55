// Package operation is what the workers of a node have under way: operations whose keys
// were asked for elsewhere, their handles, how much of them may be under way, and who waits.
//
// It owns a [Table] for each worker, whose goroutine begins and ends its operations; any
// goroutine completes them. Its lock and those of its operations are the last that anybody
// takes, in this order: nothing else is locked under them, but that a worker that reads its
// connection is interrupted under its operation's. It has no goroutines.
//
// It calls one function that is above it: [Tables.Settled], when an update that a tick waits
// for may have arrived. It never sends, never touches a row, and never waits: whoever waits does
// so at an operation's Done, or at Moved.
package operation
