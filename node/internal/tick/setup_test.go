package tick

import "testing"

func TestASetupIsOverWhenAWorkerAdvances(t *testing.T) {
	cs := NewClocks(0, 3, 5)
	s := NewSetup(cs)
	if !s.Going() {
		t.Fatal("it is over before a worker advanced")
	}
	cs[1].Advance()
	for range 2 {
		if s.Going() {
			t.Error("it goes on when a worker has advanced")
		}
	}
}
