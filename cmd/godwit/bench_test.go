package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/job/cli"
)

func TestBenchPrintsATableOrJSON(t *testing.T) {
	args := []string{"bench", "pull/10 floats/1", "--rows", "2000", "--time", "1ms"}
	run := func(args ...string) (string, error) {
		var b strings.Builder
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetOut(&b)
		err := cmd.Execute()
		return b.String(), err
	}
	out, err := run(args...)
	if err != nil || !strings.Contains(out, "local/pull/10 floats/1 worker") || !strings.Contains(out, "Go loop") {
		t.Errorf("%v:\n%s", err, out)
	}
	out, err = run(append(args, "--json")...)
	var r bench.Report
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	if err != nil || len(r.Results) != 1 || r.Results[0].Nanos.Median <= 0 {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, bad := range [][]string{{"bench", "nothing of the kind"}, {"bench", "--rows", "1"}, {"bench", "--memory", "0"}} {
		if _, err := run(bad...); cli.ExitCode(err) != cli.WrongUsage {
			t.Errorf("%q: %v, exit code %d", bad, err, cli.ExitCode(err))
		}
	}
}
