//go:build !race

package trace

const race = false
