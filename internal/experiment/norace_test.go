//go:build !race

package experiment

const race = false
