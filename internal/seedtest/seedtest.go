// Package seedtest gives randomized tests their seeds.
package seedtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Variable is the environment variable that chooses the seed.
const Variable = "GODWIT_SEED"

// Of returns the seed of a test: that of [Variable] where it is set, else another one each time. It is logged, so that it
// is seen where the test fails. A value that is no seed, 0 … 2⁶⁴ − 1, ends the test.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(Variable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s=%s: %v", Variable, s, err)
		}
	}
	t.Logf("%s=%d repeats this run", Variable, seed)
	return seed
}

// Rand returns a generator of the seed that Of returns.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}
