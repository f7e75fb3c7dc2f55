package plural

import "testing"

func TestOneThingIsSingular(t *testing.T) {
	for want, got := range map[string]string{
		"1 node": Of(1, "node"), "0 nodes": Of(0, "node"), "2 nodes": Of(uint64(2), "node"), "1 access": Of(int64(1), "access", "accesses"), "3 accesses": Of(3, "access", "accesses"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
