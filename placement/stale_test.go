package placement

import "testing"

func TestStaleKeepsWhatIsReadForAsLongAsItIsTold(t *testing.T) {
	for text, want := range map[string]int64{"stale": StaleKeep, "stale(keep=1)": 1, "stale(keep=3)": 3} {
		p, err := ByName(text)
		if err != nil {
			t.Fatal(err)
		}
		if keep, ok := OnRead(p); keep != want || !ok || p.Name() != text {
			t.Errorf("%s is %s and keeps what is read for %d clocks (%v), want %d", text, p.Name(), keep, ok, want)
		}
	}
	for _, p := range []Policy{Adaptive, ReplicateAll, Static, NonUniform} {
		if _, ok := OnRead(p); ok {
			t.Errorf("%s asks for what is read", p.Name())
		}
	}
}
