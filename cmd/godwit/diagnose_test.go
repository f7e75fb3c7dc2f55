package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
)

// recorded writes a run of three nodes, the last of which is as fast as given, and returns its folder.
func recorded(t *testing.T, speed int64) string {
	t.Helper()
	dir := t.TempDir()
	h := record.Header{Run: "r", Policy: "adaptive", Nodes: 3, Workers: 1}
	for ; h.Node < 3; h.Node++ {
		w, err := record.Create(record.Config{Dir: dir, Header: h})
		if err != nil {
			t.Fatal(err)
		}
		for second := range int64(6) {
			s := record.Sample{Time: second * 1e9, Items: second * 100, Steps: second}
			if h.Node == 2 {
				s.Items = second * speed
			}
			w.Add(s)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDiagnoseNamesTheIllAndEndsWithItsCode(t *testing.T) {
	for _, x := range []struct {
		speed int64
		code  int
		text  string
	}{{100, 0, "the run is well"}, {55, 4, "slow node: node 2 runs at 55 % of the others' speed"}} {
		dir := recorded(t, x.speed)
		code, stdout, stderr := run(t, "diagnose", dir)
		if code != x.code || !strings.Contains(stdout, x.text) {
			t.Errorf("code %d, %q, %q; want %d and %q", code, stdout, stderr, x.code, x.text)
		}
		var out struct {
			Policy   string
			Findings []struct{ Ill, Text string }
		}
		code, stdout, _ = run(t, "diagnose", "--json", dir)
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != x.code || out.Policy != "adaptive" || len(out.Findings) != x.code/4 {
			t.Errorf("code %d, %q: %v", code, stdout, err)
		}
	}
	if code, _, stderr := run(t, "diagnose", t.TempDir()); code != 1 || !strings.Contains(stderr, "no samples") {
		t.Errorf("an empty folder: code %d, %q", code, stderr)
	}
}

// Where it is not known why workers wait, the run is not said to be well.
func TestDiagnoseDoesNotKnowOfARunOnTakenProcessors(t *testing.T) {
	for _, x := range []struct {
		delayed    float64
		want, lack string
	}{{0, "the run is well", "no ill"}, {9, "no ill was found\nThe processors", "well"}} {
		var b strings.Builder
		in := &diagnose.Input{Nodes: []diagnose.Node{{Processor: 1, Delayed: x.delayed}}}
		if err := writeFindings(&b, &record.Run{}, in, nil); err != nil || !strings.Contains(b.String(), x.want) || strings.Contains(b.String(), x.lack) {
			t.Errorf("%v: %q", err, &b)
		}
	}
}

// recordedWith is recorded of a run with an event.
func recordedWith(t *testing.T, speed int64, e record.Event) (dir string) {
	t.Helper()
	dir = recorded(t, speed)
	d, err := record.NewDiary(dir, "r", "adaptive")
	if err != nil {
		t.Fatal(err)
	}
	d.Add(e)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A run that failed is not said to be well, whatever its samples say.
func TestDiagnoseSaysFirstThatTheRunFailed(t *testing.T) {
	for _, x := range []struct {
		speed      int64
		want, lack string
	}{{100, "the run failed: node 2 (a:1): node lost; and more\nuntil then nothing", "well"}, {55, "; and more\nslow node", "until then"}} {
		dir := recordedWith(t, x.speed, record.Event{End: &record.End{Error: "node 2 (a:1): node lost\nand more"}})
		if code, stdout, _ := run(t, "diagnose", dir); code != 4 || !strings.Contains(stdout, x.want) || strings.Contains(stdout, x.lack) {
			t.Errorf("code %d, %q", code, stdout)
		}
		if code, stdout, _ := run(t, "diagnose", "--json", dir); code != 4 || !strings.Contains(stdout, `"failed":"node 2 `) || !strings.Contains(stdout, `"crowded":false`) {
			t.Errorf("code %d, %q", code, stdout)
		}
		for _, node := range []string{"node-0", "node-1", "node-2"} {
			if err := os.RemoveAll(filepath.Join(dir, node)); err != nil {
				t.Fatal(err)
			}
		}
		if code, stdout, _ := run(t, "diagnose", dir); code != 4 || !strings.Contains(stdout, "no node told") {
			t.Errorf("code %d, %q, of a run that is over, of which no node told anything", code, stdout)
		}
	}
}

// A leader that was killed leaves no end: its run is not said to be well once nothing has been written for a while, nor before to have failed.
func TestDiagnoseAndTopSayThatTheEndIsMissing(t *testing.T) {
	dir := recordedWith(t, 100, record.Event{Start: &record.Start{Task: "kge"}})
	written := func(at time.Time) {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, at, at))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	written(time.Now().Add(time.Hour)) // however long this test takes
	if code, stdout, _ := run(t, "diagnose", dir); code != 0 || !strings.Contains(stdout, "the run is well") {
		t.Errorf("under way: code %d, %q", code, stdout)
	}
	written(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	want := "its end is missing, and nothing was written to " + dir + " since 2026-01-02 03:04:05: its leader was killed"
	if code, stdout, _ := run(t, "diagnose", dir); code != 4 || !strings.Contains(stdout, "the run failed: "+want) || strings.Contains(stdout, "well") {
		t.Errorf("killed: code %d, %q", code, stdout)
	}
	if code, stdout, _ := run(t, "top", "--once", dir); code != 0 || !strings.Contains(stdout, "failed: "+want) || strings.Contains(stdout, "well") {
		t.Errorf("killed: code %d, %q", code, stdout)
	}
	if code, stdout, _ := run(t, "top", "--json", dir); code != 0 || !strings.Contains(stdout, `"failed":"its end is missing, `) {
		t.Errorf("killed: code %d, %q", code, stdout)
	}
}

// A run that went on by itself has two folders: of the later one it is told, and which that is.
func TestDiagnoseTakesTheLastPartOfARun(t *testing.T) {
	all := t.TempDir()
	for name, speed := range map[string]int64{"r": 55, "r-restart1": 100} {
		if err := os.Rename(recorded(t, speed), filepath.Join(all, name)); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := run(t, "diagnose", all); code != 0 || !strings.Contains(stdout, "the run is well") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if _, stdout, _ := run(t, "diagnose", filepath.Join(all, "r")); !strings.HasPrefix(stdout, "run r\nslow node") {
		t.Errorf("of the first part: %q", stdout)
	}
}

func TestDiagnoseTellsOfDamagedSamples(t *testing.T) {
	dir := recorded(t, 100)
	files, err := filepath.Glob(filepath.Join(dir, "node-1", "*.samples"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of samples %q: %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	lines[2], lines[4] = "{\"t\":\n", "\x00\x00\n"
	if err := os.WriteFile(files[0], []byte(strings.Join(lines, "")), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(t, "diagnose", dir); code != 0 || !strings.Contains(stdout, "passed over: 2.") {
		t.Errorf("code %d, %q, %q; want 2 damaged lines told", code, stdout, stderr)
	}
	if _, stdout, _ := run(t, "diagnose", "--json", dir); !strings.Contains(stdout, `"damaged":2`) {
		t.Errorf("%q, want 2 damaged lines told", stdout)
	}
}

// Who waits on a terminal for samples to be read hears how far that is, once it takes long, and nothing is left of it.
func TestAReadingTellsHowFarItIs(t *testing.T) {
	var b strings.Builder
	p := &reading{to: &b, terminal: true, all: 4e9, next: time.Now().Add(time.Hour)}
	if p.tell(1e9); b.Len() > 0 {
		t.Errorf("at once it tells %q", b.String())
	}
	p.next = time.Now()
	p.tell(5e8)
	p.end()
	if want := "\r\x1b[Kreading samples: 1.5 of 4.0 GB\r\x1b[K"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	p = &reading{to: &b, all: 4e9}
	p.tell(1e9)
	if p.end(); b.Len() > 0 {
		t.Errorf("where nobody looks it tells %q", b.String())
	}
}
