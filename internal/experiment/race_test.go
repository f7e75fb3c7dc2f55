//go:build race

package experiment

const race = true
