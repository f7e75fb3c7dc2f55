package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/sim"
)

func TestSimulateTellsWhatItDid(t *testing.T) {
	out, err := exec.Command(binary, "simulate", "--seeds", "30", "--nodes", "3", "--policy", "adaptive", "--network", "bad", "--json").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r struct {
		Seeds, Messages, Moves, Copies uint64
		SeedsPerSecond                 float64 `json:"seeds_per_second"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Seeds != 30 || r.Messages == 0 || r.Moves == 0 || r.Copies == 0 || r.SeedsPerSecond <= 0 {
		t.Errorf("%s", out)
	}
}

// One process after the other, with other things at the same time.
func TestSimulateRepeatsBitForBit(t *testing.T) {
	var hashes [2]string
	for i, parallel := range []string{"1", "3"} {
		out, err := exec.Command(binary, "simulate", "--seeds", "30", "--parallel", parallel, "--json").Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var r struct{ Hash string }
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		hashes[i] = r.Hash
	}
	if hashes[0] != hashes[1] || strings.Trim(hashes[0], "0") == "" {
		t.Errorf("the same seeds give %s and then %s", hashes[0], hashes[1])
	}
}

// A hash has more digits than programs keep of a JSON number.
func TestSimulatePrintsItsHashInOneWay(t *testing.T) {
	r := &sim.StormsReport{Seeds: 4, Hash: 1<<59 | 1}
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		if err := (&simulate{json: json}).print(&out, r, nil); err != nil {
			t.Fatal(err)
		}
		want := "hash 0800000000000001\n"
		if json {
			want = `"hash":"0800000000000001"`
		}
		if !strings.Contains(out.String(), want) || strings.Count(out.String(), "hash") != 1 {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}

func TestSimulateRefusesWhatDoesNotExist(t *testing.T) {
	for flags, want := range map[string]string{
		"--policy best":     "no policy",
		"--network fast":    "10g",
		"--seeds 0":         "at least 1",
		"--nodes -1":        "0 or more",
		"--nodes 100000":    "--nodes 100000: want 1 … 65535",
		"--workers 70000":   "--workers 70000: want 1 … 4096",
		"--seeds 1 surplus": "unknown command",
	} {
		out, err := exec.Command(binary, append([]string{"simulate"}, strings.Fields(flags)...)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.WrongUsage || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s, want exit code %d and %q", flags, err, out, cli.WrongUsage, want)
		}
	}
}

func TestSimulateFailsIfItNeverMetWhatItIsFor(t *testing.T) {
	out, err := exec.Command(binary, "simulate", "--seeds", "100", "--policy", "nonuniform(factor=50)").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.Failure || !strings.Contains(string(out), "no replica was set up") {
		t.Errorf("%v, %s, want exit code %d and what was missing", err, out, cli.Failure)
	}
}

func TestSimulateSaysHowToRunAFailureAgain(t *testing.T) {
	s := &simulate{policy: "adaptive", network: "bad", config: sim.StormConfig{Nodes: 3, Bounded: true}, json: true}
	var out bytes.Buffer
	r := &sim.StormsReport{Seeds: 4, Failed: &sim.Failure{Seed: 5, Config: "rain", Err: errors.New("an update was lost")}}
	if err := s.print(&out, r, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"failed_seed":5`, `"weather":"rain"`, `"error":"an update was lost"`,
		`"replay":"godwit simulate --first 5 --seeds 1 --nodes 3 --bounded --policy adaptive --network bad"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
	if got, want := (&simulate{policy: "nonuniform(factor=2)"}).replay(5), "godwit simulate --first 5 --seeds 1 --policy 'nonuniform(factor=2)'"; got != want {
		t.Errorf("a policy with a parameter is run again by %s, want %s", got, want)
	}
}
