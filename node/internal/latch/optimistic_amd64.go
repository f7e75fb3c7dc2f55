//go:build !race

package latch

// Optimistic tells whether rows are read without the lock. That needs a processor
// that does loads in their order, as this kind does, or Unchanged might be
// answered before the row is read. The race detector cannot know that what was
// read during a change is thrown away, so under it rows are read with the lock.
const Optimistic = true
