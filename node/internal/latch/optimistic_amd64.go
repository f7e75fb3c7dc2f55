//go:build !race

package latch

import "sync/atomic"

// Optimistic tells whether rows are read without the lock. That needs a processor
// that does loads in their order, as this kind does, or Unchanged might be
// answered before the row is read. The race detector cannot know that what was
// read during a change is thrown away, so under it rows are read with the lock.
const Optimistic = true

// release stores v, after all that the caller wrote before. This kind of processor does stores in
// their order, so a plain one will do. Those of sync/atomic also wait until all stores are
// done, which takes as long as to lock.
//
//go:noescape
func release(word *atomic.Uint32, v uint32)
