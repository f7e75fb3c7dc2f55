//go:build !race

package job

const racing = false
