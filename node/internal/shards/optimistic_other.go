//go:build !amd64 || race

package shards

const optimistic = false
