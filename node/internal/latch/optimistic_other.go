//go:build !amd64 || race

package latch

import "sync/atomic"

const Optimistic = false

func release(word *atomic.Uint32, v uint32) { word.Store(v) }
