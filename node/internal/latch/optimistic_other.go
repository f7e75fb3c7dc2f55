//go:build !amd64 || race

package latch

const Optimistic = false
