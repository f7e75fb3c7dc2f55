package main

import (
	"strings"
	"testing"
)

func TestTheDashboardIsShownToThisMachineOnly(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"dashboard":                              {2, "accepts 1 arg"},
		"dashboard " + dir + "/none":             {1, "no such file"},
		"dashboard dashboard_test.go":            {2, "is a file"},
		"dashboard " + dir + " --addr 0.0.0.0:0": {2, "--tls-cert"},
		"dashboard " + dir + " --addr here":      {2, "--addr"},
		"train kge --dashboard 0.0.0.0:0":        {2, "--dashboard"},
		"demo --dashboard=here:x":                {2, "--dashboard"},
	} {
		if code, _, stderr := run(t, strings.Fields(args)...); code != want.code || !strings.Contains(stderr, want.says) {
			t.Errorf("godwit %s: exit code %d, want %d and %q:\n%s", args, code, want.code, want.says, stderr)
		}
	}
}
