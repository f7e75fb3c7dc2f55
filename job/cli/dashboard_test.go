package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheAddressOfTheDashboardMayBeLeftOut(t *testing.T) {
	for args, want := range map[string]string{
		"train kge --dashboard :80 --nodes 2":     "train kge --dashboard=:80 --nodes 2",
		"train kge --dashboard --nodes 2":         "train kge --dashboard --nodes 2",
		"demo --dashboard":                        "demo --dashboard",
		"demo --dashboard=:1 x:2":                 "demo --dashboard=:1 x:2",
		"run -- --dashboard a:1":                  "run -- --dashboard a:1",
		"train --dashboard 127.0.0.1:0 --data a:": "train --dashboard=127.0.0.1:0 --data a:",
	} {
		if got := withAddress(strings.Fields(args)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q becomes %q", args, got)
		}
	}
}

// Without --trace the runs write to a folder that is removed at the end.
func TestTheDashboardLeavesNothing(t *testing.T) {
	w := watching{dashboard: anyPort}
	said := ""
	end, err := w.show(nil, func(_, s string) { said = s })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.trace); err != nil || !strings.HasPrefix(said, "dashboard: http://127.0.0.1:") || !slices.Contains(w.command(), w.trace) {
		t.Errorf("said %q, the other nodes are told %q (%v)", said, w.command(), err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.trace); !os.IsNotExist(err) {
		t.Errorf("the folder is there after the end: %v", err)
	}
	own := watching{dashboard: anyPort, trace: t.TempDir()}
	if end, err = own.show(nil, func(string, string) {}); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(own.trace); err != nil {
		t.Errorf("the folder of --trace is gone: %v", err)
	}
}
