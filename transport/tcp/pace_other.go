//go:build !linux

package tcp

// pace is for systems that can be asked how fast the network is.
type pace struct{}
