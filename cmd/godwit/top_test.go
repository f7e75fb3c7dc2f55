package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// looked is a run of which node 2 is slow and keys have been used, whose name is no terminal's command.
func looked() *record.Run {
	r := &record.Run{About: record.About{Run: "r\x1b[31m", Policy: "adaptive"}}
	for i := range 3 {
		n := &record.Node{Header: record.Header{Run: r.About.Run, Policy: "adaptive", Workers: 2, Host: "h"}}
		for second := range int64(20) {
			s := record.Sample{Time: second * 1e9, Items: second * 1000, Steps: second, SentBytes: uint64(second) * 3e6,
				Waits:  []record.Wait{{For: "barrier", Time: second * 5e8}},
				Whole:  []record.Whole{{Name: "entity", Main: 60, Replica: 30, Missing: 10, Moves: 5, Copies: 4, Drops: 3, Refreshes: 2}},
				Tables: []record.Table{{Name: "entity", Use: trace.Use{Accesses: 100, Missed: 25}}}, Hot: []trace.KeyUse{{Key: 7, Use: trace.Use{Accesses: 50}}},
				Waste: record.Waste{Refreshes: 10, Unread: 4}}
			if i == 2 {
				s.Items /= 2
			}
			n.Samples = append(n.Samples, s)
		}
		r.Nodes = append(r.Nodes, n)
	}
	r.Events = []record.Event{{Start: &record.Start{Task: "kge"}}, {Epoch: &record.Epoch{Epoch: 3, Of: 15, Loss: 1.5}}}
	return r
}

func TestTopShowsNodesKeysWasteAndTheIll(t *testing.T) {
	text := lookAt(looked()).String()
	for _, want := range []string{"task kge, policy adaptive", "epoch 3/15, loss 1.5000", "slow node: node 2 runs at 50 %", "1000     75 %      0 %     25 %", "3.00 MB", "entity       300  60.0 %   30.0 %   10.0 %     15        12        9          6", "table entity       300  25.0 %", "key 7       150", "refreshes unread 40 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.ContainsRune(text, '\x1b') {
		t.Error("the name of a run moves the terminal's cursor")
	}
	b, err := json.Marshal(lookAt(looked()))
	if err != nil || !strings.Contains(string(b), `"items_per_second":1000`) {
		t.Errorf("%s, %v", b, err)
	}
	failed := &record.Run{Events: []record.Event{{End: &record.End{Error: "node 1 failed\nnode 2 failed"}}}}
	if text := lookAt(failed).String(); !strings.Contains(text, "failed: node 1 failed; node 2 failed\n") || !strings.Contains(text, "no node has told") || strings.Contains(text, "well") {
		t.Errorf("a run that failed before any node told of itself:\n%s", text)
	}
	well := looked()
	well.Nodes = well.Nodes[:2]
	if text := lookAt(well).String(); !strings.Contains(text, "the run was well") {
		t.Errorf("a run without a slow node:\n%s", text)
	}
}

func TestTopFitsTheTerminal(t *testing.T) {
	var m tea.Model = screen{run: looked(), look: lookAt(looked())}
	view := func() string { return m.View().Content }
	whole := strings.Count(view(), "\n")
	m, _ = m.Update(tea.WindowSizeMsg{Width: 40, Height: 6})
	lines := strings.Split(view(), "\n")
	if len(lines) != 6 || whole < 12 {
		t.Fatalf("%d lines, of %d: %q", len(lines), whole, lines)
	}
	for range 100 {
		m, _ = m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
	}
	for _, l := range strings.Split(view(), "\n") {
		if len([]rune(l)) > 40 {
			t.Errorf("%q is too long", l)
		}
	}
	if s := view(); !strings.Contains(s, "waste") {
		t.Errorf("the end is not shown: %s", s)
	}
	end := view()
	if m, _ = m.Update(tea.KeyPressMsg{Code: tea.KeyUp}); view() == end {
		t.Error("after many keys down, one up does nothing")
	}
	if _, quit := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); quit == nil || quit() != tea.Quit() {
		t.Error("q does not end it")
	}
}

// Who looks at a run that goes on by itself sees it go on. A part that was named is shown alone, and so is the run when another one comes.
func TestTopFollowsARunThatGoesOnByItself(t *testing.T) {
	all := t.TempDir()
	add := func(name string) string {
		dir := filepath.Join(all, name)
		if err := os.Rename(recorded(t, 100), dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := add("r")
	looking := func(dir string) tea.Model {
		r, err := record.Recent(dir, lately)
		if err != nil {
			t.Fatal(err)
		}
		return screen{dir: dir, run: r, look: lookAt(r)}
	}
	whole, part := looking(all), looking(first)
	check := func(m tea.Model, want string) tea.Model {
		t.Helper()
		m, _ = m.Update(moment{})
		if s := m.(screen); s.err != nil || s.run.Dir != want {
			t.Errorf("it shows %s (%v), want %s", s.run.Dir, s.err, want)
		}
		return m
	}
	whole, part = check(whole, first), check(part, first)
	second := add("r-restart1")
	whole, part = check(whole, second), check(part, first)
	add("another")
	check(whole, second)
	check(part, first)
}

// What holds a run up is told whole on a narrow terminal, too; tables are cut.
func TestSentencesFitTheTerminal(t *testing.T) {
	const text = "run r\n\nanswers: workers wait for answers to their pulls\n  advice: announce keys earlier, or naïvely so\n\n  node  items/s  compute\n     0       12     50 %\n"
	const want = "run r\n\nanswers: workers wait\nfor answers to their\npulls\n  advice: announce\n  keys earlier, or\n  naïvely so\n\n  node  items/s  compute\n     0       12     50 %\n"
	if got := fold(text, 21); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fold(text, 0); got != text {
		t.Errorf("without a width: %q", got)
	}
	l := lookAt(looked())
	l.Findings = nil
	l.told, l.crowded = true, true
	if s := (screen{look: l, width: 40, height: 60}).View().Content; !strings.Contains(strings.ReplaceAll(s, "\n", " "), "so it is not known why workers wait") {
		t.Errorf("a sentence is cut: %s", s)
	}
}

func TestTopPrintsOnceWhereNobodyLooks(t *testing.T) {
	dir := recorded(t, 100)
	for _, flags := range [][]string{{dir}, {"--once", dir}} {
		code, stdout, stderr := run(t, append([]string{"top"}, flags...)...)
		if code != 0 || !strings.Contains(stdout, "run r, task of a program, policy adaptive") {
			t.Errorf("%v: code %d, %q, %q", flags, code, stdout, stderr)
		}
	}
}

// What top passes over, it says, too.
func TestTopTellsOfWhatCannotBeRead(t *testing.T) {
	dir := recorded(t, 100)
	path := filepath.Join(dir, "node-1", "000001.samples")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("\x00"), b...), 0o666); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "node-0", "000001.trace")
	if err := os.WriteFile(segment, []byte("GODWITRC\x09\x00\x00\x00\x40\x00\x00\x00"+strings.Repeat(" ", 48)), 0o666); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "top", dir)
	if code != 0 || !strings.Contains(stdout, "passed over: 7.") || !strings.Contains(stdout, "keys have no names: trace: the segment has version 9 of the format, and this program reads versions 1 to 4: look at the run with the version of godwit that wrote it ("+segment+")") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if _, stdout, _ = run(t, "top", "--json", dir); !strings.Contains(stdout, `"damaged":7`) {
		t.Errorf("%q, want 7 damaged lines told", stdout)
	}
}
