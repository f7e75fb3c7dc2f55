//go:build !linux

package bench

func pin(int) {}

func threadTime() int64 { return 0 }
