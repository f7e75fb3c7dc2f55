//go:build !preempt

// Package preempt marks the places of a node at which another goroutine may come
// between: at atomic accesses and at locks. Built with the tag preempt, a
// simulation, which otherwise runs each goroutine until it waits, has others run at
// such places, as its seed says. Without the tag all of this is nothing.
package preempt

import "sync"

// On tells whether the package was built with the tag.
const On = false

// Point is a place at which another goroutine may come between.
func Point() {}

// Hold begins a part in which no other goroutine of a simulation runs: one that
// holds a lock which the others would wait for. Release ends it.
func Hold() {}

// Release ends what Hold began.
func Release() {}

// Copy is copy, and may be interrupted in the middle.
func Copy(dst, src []float32) { copy(dst, src) }

// A Mutex is a sync.Mutex. Before it is locked, and after, others may come between.
type Mutex = sync.Mutex

// Unverified has rows count as read well that changed while they were read without
// a lock, to see that storms notice.
const Unverified = false

// Install has points call a function, until remove is called. Only one is installed
// at a time; others wait for it.
func Install(func()) (remove func()) { return func() {} }
