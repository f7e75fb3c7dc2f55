//go:build unix && !linux

package arena

func advise([]byte) {}
