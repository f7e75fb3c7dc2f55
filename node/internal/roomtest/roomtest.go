// Package roomtest is what tests of a node's rooms share.
package roomtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// Seed is that of the random tests.
var Seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

// Patience is how long a test waits for what must come. It is far more than needed:
// machines that run tests are busy.
const Patience = 4 * time.Minute

// Main names the seed where a test fails, whatever its message says.
func Main(m *testing.M) {
	code := m.Run()
	if code != 0 {
		fmt.Printf("the tests ran with -seed %d\n", *Seed)
	}
	os.Exit(code)
}

// Background returns a context that ends with the test, or after Patience.
func Background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Must fails the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until ok.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
