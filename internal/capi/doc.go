// Package capi is the C library of Godwit without C: clusters, workers and operations by
// their numbers, waits that return after a while, errors as a code and a text. The command
// libgodwit makes C functions of it, and godwit.h there describes them.
//
// A call of a worker is made on the caller's thread as far as it waits for nobody; what is
// left, the worker's node does meanwhile. A call that may wait before it has asked for all its
// keys is made by a goroutine, which the caller waits for. So every call returns after the time
// that the caller gives it, with an operation that is waited for again, or cancelled.
//
// A worker serves one thread at a time. A second one gets [ErrBusy].
package capi
