package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/experiment"
	"github.com/godwit-ps/godwit/job/cli"
)

func TestExperimentWithoutANameListsThem(t *testing.T) {
	out, err := exec.Command(binary, "experiment").Output()
	for _, name := range experiment.Names() {
		if err != nil || !strings.Contains(string(out), name) {
			t.Errorf("no %s in %q: %v", name, out, err)
		}
	}
}

func TestExperimentPrintsWhatItMeasured(t *testing.T) {
	out, err := exec.Command(binary, "experiment", "timing", "--quick", "--step", "50us", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r experiment.Report
	if err := json.Unmarshal(out, &r); err != nil || len(r.Rows) == 0 || r.Step.Microseconds() != 50 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhatWasMeasuredIsPrintedThoughItsFilesCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "timing.csv"), 0o755); err != nil { // in the place of the file
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "experiment", "timing", "--quick", "--step", "50us", "--json", "--out", dir).Output()
	var exit *exec.ExitError
	var r experiment.Report
	if !errors.As(err, &exit) || exit.ExitCode() != cli.Failure || json.Unmarshal(out, &r) != nil || len(r.Rows) == 0 {
		t.Errorf("%v: %s", err, out)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := root()
	cmd.SetArgs([]string{"experiment", "timing", "--quick", "--step", "50us", "--out", file})
	if err := cmd.Execute(); cli.ExitCode(err) != cli.Failure || !strings.Contains(err.Error(), "--out: ") {
		t.Errorf("a file as the folder: %v", err)
	}
}

func TestBestFindsSettingsAndSaysWhetherAdaptiveIsBehind(t *testing.T) {
	args := []string{"experiment", "best", "--quick", "--task", "sketch", "--nodes", "2", "--budget", "6", "--step", "10us"}
	out, err := exec.Command(binary, append(args, "--json")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var r experiment.Report
	if err := json.Unmarshal(out, &r); err != nil || len(r.Rows) < 8 || len(r.Rows) > 9 {
		t.Fatalf("%d rows, want one node and seven policies on two, of adaptive also the best program: %v\n%s", len(r.Rows), err, out)
	}
	if o := r.Rows[1].Over; o == nil || o.Ratio <= 0 || r.Rows[1].Policy != "adaptive" {
		t.Errorf("%+v beside the best of the others is %+v", r.Rows[1], o)
	}
	for _, row := range r.Rows[2:] {
		if row.Tried < 2 {
			t.Errorf("of %s %d settings were tried", row.Policy, row.Tried)
		}
	}
}

func TestAnUnknownExperimentIsWrongUsage(t *testing.T) {
	_, err := exec.Command(binary, "experiment", "speed").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.WrongUsage || !strings.Contains(string(exit.Stderr), "scaling") {
		t.Errorf("%v", err)
	}
}

func TestExperimentComparesChosenPolicies(t *testing.T) {
	_, err := exec.Command(binary, "experiment", "skew", "--policies", "static,fastest").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.WrongUsage || !strings.Contains(string(exit.Stderr), "fastest") {
		t.Errorf("%v", err)
	}
}

func TestCostsThatCannotBeReadAreWrongUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for what, args := range map[string][]string{
		"no such file":  {"experiment", "timing", "--costs", filepath.Join(dir, "nowhere")},
		"no JSON":       {"experiment", "timing", "--costs", write("a", "costs")},
		"another field": {"experiment", "timing", "--costs", write("b", `{"key": 50, "frame": 10, "latency": 1}`)},
		"costs below 0": {"experiment", "timing", "--costs", write("c", `{"key": -1, "frame": 10}`)},
		"no costs":      {"experiment", "timing", "--costs", write("d", `{}`)},
		"seeds":         {"experiment", "timing", "--seeds", "-1"},
		"budget":        {"experiment", "best", "--budget", "-1"},
		"nodes":         {"experiment", "best", "--nodes", "2,0"},
		"rows":          {"experiment", "scaling", "--dim", "-1"},
		"cases":         {"bench", "--costs", "local"},
		"no policies":   {"experiment", "delay", "--policies", "static"},
		"no tasks":      {"experiment", "timing", "--task", "mf"},
		"real steps":    {"experiment", "sketch", "--real", "--step", "1ms"},
		"parallel":      {"experiment", "scaling", "--parallel", "0"},
		"data of skew":  {"experiment", "skew", "--data", dir},
		"one node":      {"experiment", "techniques", "--nodes", "1"},
		"numbers":       {"experiment", "techniques", "--nodes", "2,4"},
		"no real nodes": {"experiment", "scaling", "--real"},
		"single keys":   {"experiment", "best", "--real", "--calls", "single"},
		"no samples":    {"experiment", "sampling", "--task", "mf"},
		"no data":       {"experiment", "scaling", "--data", filepath.Join(dir, "nowhere")},
	} {
		cmd := root()
		cmd.SetArgs(args)
		if err := cmd.Execute(); cli.ExitCode(err) != cli.WrongUsage {
			t.Errorf("%s: %v, exit code %d", what, err, cli.ExitCode(err))
		}
	}
}

func TestAnExperimentIsChargedTheCostsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "costs.json")
	if err := os.WriteFile(file, []byte(`{"from": "a test", "key": 50, "frame": 1234, "record": 100, "round": 100}`), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "experiment", "timing", "--quick", "--step", "50us", "--costs", file).Output()
	if err != nil || !strings.Contains(string(out), "1234") || !strings.Contains(string(out), "(a test)") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// What a step computes is what is left of an epoch without what is charged, so both are of one machine.
func TestCostsAreMeasuredWhereStepsAre(t *testing.T) {
	t.Parallel()
	for from, args := range map[string][]string{
		"at most 20000 rows":            {"experiment", "timing", "--quick"},
		experiment.MeasuredCosts().From: {"experiment", "timing", "--quick", "--step", "50us"},
	} {
		out, err := exec.Command(binary, args...).Output()
		if err != nil || !strings.Contains(string(out), from) {
			t.Errorf("%v, want costs of %q:\n%s", err, from, out)
		}
	}
}

func TestSeedsOfRealNodesAreRun(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(binary, "experiment", "sketch", "--quick", "--real", "--nodes", "2", "--seeds", "2", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r experiment.Report
	if err := json.Unmarshal(out, &r); err != nil || r.Seeds != 2 || len(r.Rows) == 0 || r.Rows[0].Range == nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAnInterruptedExperimentPrintsWhatItHasAsItWasAsked(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "experiment", "timing", "--quick", "--step", "50us", "--parallel", "1", "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(progress)
	for range 3 {
		lines.Scan()
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitCode(cli.ErrInterrupted) {
		t.Errorf("it ends with %v", err)
	}
	var r experiment.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Rows) < 2 {
		t.Errorf("%v: %s", err, &out)
	}
}
