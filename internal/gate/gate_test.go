package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/internal/events"
)

// printed are lines as "godwit train --json" prints them.
const printed = `{"waiting":{"nodes":1}}
{"start":{"nodes":[{"pid":7},{"pid":8}]}}
{"tick":{"items":5}}
{"epoch":{"epoch":1,"items":100}}
{"epoch":{"epoch":2,"items":100}}
{"epoch":{"epoch":3,"items":300}}
{"evaluation":{"epoch":3}}
{"result":{"policy":"adaptive"}}
`

// read reads the events of a run to their end.
func read(lines io.Reader, clock func(pid int) (time.Duration, error)) (cost, error) {
	r := &run{clock: clock}
	return r.cost(events.Read(lines, r.event))
}

func TestTheProcessorTimeOfEpochsCounts(t *testing.T) {
	// A process uses a millisecond between two looks, the other one three.
	used := map[int]time.Duration{7: 50 * time.Second}
	clock := func(pid int) (time.Duration, error) {
		used[pid] += map[int]time.Duration{7: time.Millisecond, 8: 3 * time.Millisecond}[pid]
		return used[pid], nil
	}
	c, err := read(strings.NewReader(printed), clock)
	if err != nil || math.Abs(c.first-40) > 1e-9 || math.Abs(c.later-20) > 1e-9 {
		t.Errorf("%v µs an example in the first epoch, %v later (%v), want 40 and 20", c.first, c.later, err)
	}
	short := printed[:strings.Index(printed, `{"epoch":{"epoch":2`)]
	if _, err := read(strings.NewReader(short), clock); err == nil || !strings.Contains(err.Error(), "1 epochs") {
		t.Errorf("one epoch: %v", err)
	}
	gone := errors.New("gone")
	if _, err := read(strings.NewReader(printed), func(int) (time.Duration, error) { return 0, gone }); !errors.Is(err, gone) {
		t.Errorf("no clock: %v", err)
	}
	if _, err := read(strings.NewReader("panic: oops\n"), clock); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("a line that is no event: %v", err)
	}
}

func TestAGateClosesBeyondTheTolerance(t *testing.T) {
	even, uneven := spread{1.9, 2, 2.1}, spread{1.5, 2, 3}
	for _, c := range []struct {
		base   spread
		ratios []float64
		worse  bool
	}{
		{even, []float64{2, 2.1, 1.9}, false},
		{even, []float64{2.3, 2.4, 9}, false}, // at the tolerance, and a run that was disturbed
		{even, []float64{2.5, 2.41, 2.3}, true},
		{even, []float64{1, 1, 1}, false},
		{uneven, []float64{2.9, 2.9, 2.9}, false}, // it has been so before
		{uneven, []float64{3.1, 3.1, 2.9}, true},
	} {
		base := &figure{Name: "kge", Args: "a", Ratio: c.base}
		f := &figure{Name: "kge", Baseline: base}
		for _, ratio := range c.ratios {
			f.add(cost{first: 1, later: 2}, cost{first: 3, later: 2 * ratio}, cost{first: 1, later: 4})
		}
		f.sum()
		if f.First.Median != 3 || math.Abs(f.ToApart.Median-f.Ratio.Median/2) > 1e-9 || f.Apart.Most != 4 {
			t.Errorf("%v: first epoch %v, apart %v, to these %v", c.ratios, f.First, f.Apart, f.ToApart)
		}
		err := (&report{Tasks: []*figure{{Name: "new"}, f}}).worse(0.2)
		if errors.Is(err, errWorse) != c.worse {
			t.Errorf("%v: %v", c.ratios, err)
		}
		if c.worse && !strings.Contains(err.Error(), "kge") {
			t.Errorf("the error does not name the task: %v", err)
		}
	}
}

func TestABaselineIsOfItsArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baseline.json")
	empty, err := readBaseline(file)
	if err != nil {
		t.Fatal(err)
	}
	kge, mf := tasks[0], tasks[1]
	first := &report{Tasks: []*figure{{Name: kge.name, Args: kge.args, Ratio: spread{1, 2, 3}}, {Name: mf.name, Args: mf.args, Ratio: spread{4, 5, 6}}}}
	if err := empty.merge(first).save(file); err != nil {
		t.Fatal(err)
	}
	base, err := readBaseline(file)
	if err != nil {
		t.Fatal(err)
	}
	if f := base.figure(kge); f == nil || f.Ratio.Median != 2 {
		t.Errorf("the baseline of %s is %+v", kge.name, f)
	}
	if f := base.figure(task{kge.name, kge.args + " --dim 1"}); f != nil {
		t.Errorf("other data have the baseline %+v", f)
	}
	second := base.merge(&report{Tasks: []*figure{{Name: kge.name, Args: kge.args, Ratio: spread{7, 8, 9}}}})
	if a, b := second.figure(kge), second.figure(mf); a.Ratio.Median != 8 || b == nil || b.Ratio.Median != 5 {
		t.Errorf("merged: %+v and %+v", a, b)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readBaseline(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("half a file: %v", err)
	}
}

// Each task must have a baseline, or the gate would be open for it.
func TestTheCommittedBaselineHasAllTasks(t *testing.T) {
	base, err := readBaseline("baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tasks {
		if f := base.figure(x); f == nil || !(f.Ratio.Median > 0) {
			t.Errorf("no baseline of %s with %q: go run ./internal/gate -write -match %s", x.name, x.args, x.name)
		}
	}
}

func TestTheClockOfAProcessRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	before, err := bench.ProcessorTimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for sum, n := 0.0, 0; ; n++ {
		sum += math.Sqrt(float64(n))
		if now, err := bench.ProcessorTimeOf(os.Getpid()); err != nil || now > before+time.Millisecond {
			if err != nil || sum < 0 {
				t.Error(err)
			}
			break
		}
	}
	if _, err := bench.ProcessorTimeOf(1 << 22); err == nil {
		t.Error("a process that does not exist has a clock")
	}
}

func TestACommandThatFailsSaysWhy(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	_, err = train(context.Background(), sh, []string{"-c", "echo no such flag >&2; exit 2"}, bench.ProcessorTimeOf)
	if err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Error(err)
	}
	script := fmt.Sprintf("cat <<'E'\n%sE\n", printed)
	if _, err := train(context.Background(), sh, []string{"-c", script}, func(int) (time.Duration, error) { return 0, nil }); err != nil {
		t.Error(err)
	}
}

// Runs at once are told apart by their processes; the first error ends the others.
func TestRunsAtOnceHaveAMean(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	var mu sync.Mutex
	used, looks := time.Duration(0), 0
	clock := func(int) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		used += time.Millisecond
		looks++
		return used, nil
	}
	script := fmt.Sprintf("cat <<'E'\n%sE\n", printed)
	c, err := trainAtOnce(t.Context(), 3, sh, []string{"-c", script}, clock)
	if err != nil || looks != 3*2*4 || c.first < 20 || c.later < 10 {
		t.Errorf("%d looks, %+v (%v): want three runs", looks, c, err)
	}
	once := filepath.Join(t.TempDir(), "once")
	script = fmt.Sprintf("mkdir %s || exec sleep 60; echo no such flag >&2; exit 2", once)
	if _, err := trainAtOnce(t.Context(), 3, sh, []string{"-c", script}, clock); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("one failed and the others wait: %v", err)
	}
}

func TestTheTableHasEachTask(t *testing.T) {
	r := &report{Policy: "adaptive", Tasks: []*figure{{Name: "kge", Ratio: spread{1, 2, 3}}, {Name: "mf", Baseline: &figure{Ratio: spread{4, 5, 6}}}}}
	var b bytes.Buffer
	if err := r.show(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kge", "2.00 [1.00, 3.00]", "mf", "5.00 [4.00, 6.00]", "none"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

// Nothing is measured then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&options{rounds: 1, args: []string{"kge"}}).run(ended, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
