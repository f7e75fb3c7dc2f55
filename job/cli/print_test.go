package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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

// Who wants to hear of nothing but errors hears that a checkpoint is not there, and not that one made way for a later one.
func TestACheckpointThatCouldNotBeWrittenIsToldToWhoWantsErrorsOnly(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before); logger.Store(nil); plainLogger.Store(nil) })
	var b bytes.Buffer
	if err := logTo(&b, jsonLog); err != nil {
		t.Fatal(err)
	}
	p := &printer{}
	p.event(job.Event{Checkpoint: &job.Checkpoint{Number: 7, Error: "made way", GivenUp: true}})
	p.event(job.Event{Checkpoint: &job.Checkpoint{Number: 8, Error: "the disk is full"}})
	if s := b.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"level":"ERROR","msg":"checkpoint 8 could not be written, and the run goes on: the disk is full"`) {
		t.Errorf("it says %s", s)
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
