//go:build !linux

package bench

func settle(int) {}

func threadTime() int64 { return 0 }
