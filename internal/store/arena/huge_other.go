//go:build unix && !linux

package arena

func hugePages([]byte) {}
