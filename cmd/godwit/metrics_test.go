package main

import (
	"strings"
	"testing"
)

func TestWatchingAsFlagsCannotSayIt(t *testing.T) {
	for args, want := range map[string]string{
		"train kge --pprof":                            "give that too",
		"train kge --metrics 9464":                     "--metrics: ",
		"train kge --run a/b":                          `--run "a/b": want 1`,
		"train kge --dashboard --trace-keys random=-1": "--trace-keys: ",
		"train kge --dashboard --trace-keys entity:x":  "--trace-keys: ",
		"node --etcd h:1 --run r --metrics here":       "--metrics: ",
	} {
		code, _, stderr := run(t, strings.Fields(args)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("godwit %s: exit code %d, want 2 and %q:\n%s", args, code, want, stderr)
		}
	}
}
