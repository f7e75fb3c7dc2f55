//go:build !amd64 || race

package node

const glances = false
