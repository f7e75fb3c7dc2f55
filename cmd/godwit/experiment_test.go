package main

import (
	"encoding/json"
	"errors"
	"os/exec"
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
