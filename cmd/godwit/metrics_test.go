package main

import (
	"strings"
	"testing"
)

func TestMetricsNeedAnAddress(t *testing.T) {
	for args, want := range map[string]string{
		"train kge --pprof":                      "give that too",
		"train kge --metrics 9464":               "--metrics: ",
		"node --etcd h:1 --run r --metrics here": "--metrics: ",
	} {
		code, _, stderr := run(t, strings.Fields(args)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("godwit %s: exit code %d, want 2 and %q:\n%s", args, code, want, stderr)
		}
	}
}
