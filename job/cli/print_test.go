package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/train/task"
)

// What a command is to be copied from is read by a shell as it was meant.
func TestTheCommandToGoOnIsOneOfAShell(t *testing.T) {
	for _, place := range []string{"/runs/kge#12", "/my runs/kge#12", "s3://models/kge?region=eu&path=1#12", "/it's/$HOME", "~", "#"} {
		var b bytes.Buffer
		p := &printer{people: &b, again: program() + " train", last: &job.Checkpoint{Place: place}}
		p.goOn(" --nodes 1")
		_, command, _ := strings.Cut(b.String(), program()+" ")
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimSpace(command)).Output()
		if want := "train\n--resume\n" + place + "\n--nodes\n1\n"; err != nil || string(out) != want {
			t.Errorf("%s is read as %q (%v), want %q", command, out, err, want)
		}
	}
	if plain := "/runs/kge-1_b.c#12"; Argument(plain) != plain {
		t.Errorf("%s has become %s", plain, Argument(plain))
	}
}

func TestAnUnknownCommandIsAnsweredWithTheHelpOnce(t *testing.T) {
	for _, cmd := range []*cobra.Command{Program(Task{Settings: task.DefaultSketch()}), {Use: "x", RunE: func(*cobra.Command, []string) error { return nil }, Args: cobra.NoArgs}} {
		if !cmd.HasSubCommands() {
			Root(cmd)
		}
		cmd.SetArgs([]string{"unknown"})
		if err := cmd.Execute(); err == nil || strings.Count(err.Error(), "See '") != 1 {
			t.Errorf("%s: got %v", cmd.Name(), err)
		}
	}
}

func TestALostCoordinatorLeavesACommandToGoOn(t *testing.T) {
	for _, c := range []struct {
		await bool
		err   error
		want  string
	}{
		{true, fmt.Errorf("%w: etcd at x:1", coord.ErrCoordinator), " train --resume runs/a#3 --await\n"},
		{false, fmt.Errorf("%w: etcd at x:1", coord.ErrCoordinator), " train --resume runs/a#3\n"},
		{true, fmt.Errorf("node 1: %w", godwit.ErrPeerLost), " train --resume runs/a#3 --nodes 2 --await\n"},
		{true, errors.New("the data is not there"), ""},
	} {
		var b bytes.Buffer
		(&cluster{await: c.await}).tell(&printer{people: &b, again: "godwit train", last: &job.Checkpoint{Place: "runs/a#3"}}, 3, c.err)
		if said := b.String(); c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("after %q it says %q, want %q", c.err, said, c.want)
		}
	}
}

// Who wants to hear of nothing but warnings and errors hears of these, and that a checkpoint is not there, but not that one made way for a later one.
// A process that another one started leaves this to that one.
func TestTheQuietHearWarnings(t *testing.T) {
	events := []job.Event{
		{Start: &job.Start{Data: "3 facts", Warnings: []string{"no fact is held out"}, Nodes: make([]job.Peer, 2)}},
		{Evaluation: &job.Evaluation{Warnings: []string{"a count is wrong"}}},
		{Epoch: &job.Epoch{Epoch: 1, Of: 2}},
		{Checkpoint: &job.Checkpoint{Number: 7, Error: "made way", GivenUp: true}},
		{Checkpoint: &job.Checkpoint{Number: 8, Error: "the disk is full"}},
		{Warning: "old checkpoints could not be removed"},
		{Stopping: "interrupted"},
	}
	const want = "warning: no fact is held out\nwarning: a count is wrong\n" +
		"warning: checkpoint 8 could not be written, and the run goes on: the disk is full\nwarning: old checkpoints could not be removed\n" +
		"warning: no checkpoint was written before: nothing is kept\n"
	var b bytes.Buffer
	for _, p := range []*printer{{people: &b, quiet: true}, {}} {
		for _, e := range events {
			p.event(e)
		}
		p.lost(2)
	}
	if b.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", &b, want)
	}
}

func TestNobodyLooksAtWhatIsThrownAway(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) || IsTerminal(&bytes.Buffer{}) {
		t.Error("what is no terminal is taken for one")
	}
}

// A terminal that has nothing but lines gets no commands.
func TestALineIsWrittenAnewWhereTheTerminalCan(t *testing.T) {
	device, err := os.Open("/dev/zero") // a character device, as a terminal is
	if err != nil {
		t.Skip(err)
	}
	defer device.Close()
	for term, want := range map[string]bool{"xterm": true, "": true, "dumb": false} {
		t.Setenv("TERM", term)
		if got := Rewrites(device); got != want {
			t.Errorf("TERM=%q: %v, want %v", term, got, want)
		}
		err := os.Stderr
		os.Stderr = device
		tick := newPrinter(false, false).tick()
		os.Stderr = err
		if got := tick > 0; got != want {
			t.Errorf("TERM=%q: ticks every %v", term, tick)
		}
	}
}

func TestWhoIsWaitedForIsCounted(t *testing.T) {
	for nodes, want := range map[int]string{1: "one more node; on its machine run", 2: "2 more nodes; on each of their machines run"} {
		var b bytes.Buffer
		p := &printer{people: &b, join: func(job.Event) string { return "godwit node" }}
		if p.show(job.Event{Waiting: &job.Waiting{Nodes: nodes}}); !strings.Contains(b.String(), want) {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}

// A quiet run says what nobody could find out else: at which port that it chose a page is, and the token that was made for it.
func TestAQuietRunSaysWhatNobodyKnows(t *testing.T) {
	waiting := func(token string) func(*printer) {
		return func(p *printer) { p.event(job.Event{Waiting: &job.Waiting{Token: token, Nodes: 1}}) }
	}
	listening := func(asked string) func(*printer) {
		return func(p *printer) { p.listening(asked, "a page") }
	}
	for name, c := range map[string]struct {
		happens func(*printer)
		quiet   bool // whether a quiet run says it
	}{
		"a page at a free port": {listening(anyPort), true}, "of loopback": {listening(":0"), true}, "a page at a port that was chosen": {listening("127.0.0.1:90"), false},
		"a new token": {waiting("NEW"), true}, "a token that was chosen": {waiting(""), false},
		"an early end": {func(p *printer) { p.event(job.Event{Stopping: "asked"}) }, false},
	} {
		for _, quiet := range []bool{true, false} {
			var b bytes.Buffer
			c.happens(&printer{people: &b, quiet: quiet, join: func(job.Event) string { return "join" }})
			if says := b.Len() > 0; says != (c.quiet || !quiet) {
				t.Errorf("%s: quiet %v, it says %q", name, quiet, b.String())
			}
		}
	}
}
