package cli

import "testing"

func TestNodesOfAMachineShareAnAddress(t *testing.T) {
	for _, x := range []struct {
		metrics string
		spread  bool
		self    int
		want    string
	}{
		{":9464", true, 3, "127.0.0.1:9467"},
		{":9464", false, 3, "127.0.0.1:9464"},
		{"10.0.0.1:0", true, 3, "10.0.0.1:0"},
		{"[::1]:80", true, 1, "[::1]:81"},
		{":65535", true, 1, ""},
	} {
		w := watching{metrics: x.metrics, spread: x.spread}
		if got, err := w.addr(x.self); got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("node %d of %q listens at %q, want %q (error %v)", x.self, x.metrics, got, x.want, err)
		}
	}
}
