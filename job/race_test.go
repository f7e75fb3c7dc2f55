//go:build race

package job

// racing says that the race detector is on: training takes ten times as long.
const racing = true
