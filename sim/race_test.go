//go:build race

package sim

// racing: storms take ten times as long, and each has one goroutine only.
const racing = true
