package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// With --log-format json, all that any process of a run says on stderr is JSON, and says of which run
// and node it is as soon as that is known.
func TestLogsAreJSONWhereAskedFor(t *testing.T) {
	code, _, stderr := run(t, with("--nodes", "2", "--run", "logged", "--log-format", "json")...)
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	epochs := 0
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		var m struct {
			Time       time.Time
			Level, Msg string
			Run        string
			Node       *int
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Time.IsZero() || m.Level == "" || m.Msg == "" {
			t.Errorf("%q: %v", line, err)
		}
		if strings.HasPrefix(m.Msg, "epoch ") {
			epochs++
			if m.Run != "logged" || m.Node == nil || *m.Node != 0 {
				t.Errorf("%q does not name its run and node", line)
			}
		}
	}
	if epochs == 0 {
		t.Errorf("no epoch was logged: %s", stderr)
	}
	if code, _, stderr := run(t, with("--log-format", "xml")...); code != 2 || !strings.Contains(stderr, "want text or json") {
		t.Errorf("code %d, %q", code, stderr)
	}
}
