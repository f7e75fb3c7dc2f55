package seedtest

import (
	"fmt"
	"runtime"
	"testing"
)

// A watched test keeps what it is told, and ends where it fails.
type watched struct {
	testing.TB
	log    string
	failed bool
}

func (w *watched) Helper()                    {}
func (w *watched) Logf(s string, args ...any) { w.log += fmt.Sprintf(s, args...) }

func (w *watched) Fatalf(s string, args ...any) {
	w.failed = true
	w.Logf(s, args...)
	runtime.Goexit()
}

// seedIn asks for a seed with an environment.
func seedIn(t *testing.T, value string) (seed uint64, w *watched) {
	t.Setenv(Variable, value)
	w = &watched{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		seed = Of(w)
	}()
	<-done
	return seed, w
}

func TestASeedIsGivenOrDrawnAndLogged(t *testing.T) {
	if seed, w := seedIn(t, "18446744073709551615"); seed != 1<<64-1 || w.failed || w.log != "GODWIT_SEED=18446744073709551615 repeats this run" {
		t.Errorf("seed %d, %+v", seed, w)
	}
	one, w := seedIn(t, "")
	if w.log != fmt.Sprintf("GODWIT_SEED=%d repeats this run", one) {
		t.Errorf("seed %d, %+v", one, w)
	}
	if other, _ := seedIn(t, ""); other == one {
		t.Errorf("drawn twice: %d", one)
	}
	if _, w := seedIn(t, "-1"); !w.failed {
		t.Error("-1 is a seed")
	}
}

func TestTheGeneratorIsOfTheSeed(t *testing.T) {
	t.Setenv(Variable, "7")
	one, again := Rand(t).Uint64(), Rand(t).Uint64()
	t.Setenv(Variable, "8")
	if other := Rand(t).Uint64(); one != again || one == other {
		t.Errorf("7 gives %d and %d, 8 gives %d", one, again, other)
	}
}
