//go:build !race

package node

const race = false
