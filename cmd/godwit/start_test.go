package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

// unmet starts two nodes of a run that each other are told to reach at an address,
// where they cannot.
func unmet(t *testing.T, at string, flags ...string) (both [2]*proc) {
	t.Helper()
	lead := start(t, with(append([]string{"--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0",
		"--advertise", at, "--json"}, flags...)...)...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	node := startAs(t, w.Waiting.Token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--advertise", at, "--quiet")
	return [2]*proc{lead, node}
}

func TestNodesThatCannotReachEachOtherEndAndSayWhy(t *testing.T) {
	t.Parallel()
	for _, p := range unmet(t, "nohost.invalid", "--join", "20s") {
		p.exits(cli.Lost, limit)
		if _, errs := p.said(); !strings.Contains(errs, "node 1 cannot reach node 0 at nohost.invalid:") || !strings.Contains(errs, ": lookup nohost.invalid") {
			t.Errorf("it is not said who could not reach whom, and why:\n%s", errs)
		}
	}
}

// meeting starts two nodes of which one dials the other when it returns, and gets
// no answer.
func meeting(t *testing.T) [2]*proc {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	if err := silent.(*net.TCPListener).SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	both := unmet(t, silent.Addr().String(), "--join", "1h", "--ttl", ttl)
	c, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return both
}

func TestAnInterruptEndsNodesThatHaveNotMet(t *testing.T) {
	t.Parallel()
	for i := range 2 {
		both := meeting(t)
		if err := both[i].cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		for _, p := range both {
			p.exits(cli.Interrupted, limit)
		}
	}
}

func TestTheLossOfANodeEndsOneThatHasNotMetIt(t *testing.T) {
	t.Parallel()
	for i := range 2 {
		both := meeting(t)
		if err := both[i].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		both[1-i].exits(cli.Lost, limit)
	}
}

// A node of another machine is not the leader's to start again: all others end, and the leader tells how to go on.
func TestALostNodeOfAnotherMachineLeavesACommandToGoOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs")
	lead := start(t, with("--nodes", "3", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--epochs", "100000", "--eval-every", "1",
		"--json", "--ttl", ttl, "--checkpoint", dir)...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	node := func() *proc {
		return startAs(t, w.Waiting.Token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--quiet")
	}
	stays, dies := node(), node()
	lead.until("a checkpoint", isCheckpoint)
	dies.send(syscall.SIGKILL)
	for _, p := range []*proc{lead, stays} {
		p.exits(cli.Lost, limit)
		if _, errs := p.said(); !strings.Contains(errs, "): node lost: ") {
			t.Errorf("it is not said which node was lost:\n%s", errs)
		}
	}
	_, errs := lead.said()
	if _, command, _ := strings.Cut(errs, " train kge --resume "+dir+"#"); !strings.Contains(command, " --nodes 2 --await\n") {
		t.Errorf("the command to go on is not there:\n%s", errs)
	}
}

// Where there is no folder for temporary files, the error says what it is for, and what to set.
func TestAFolderForTemporaryFilesThatIsNoneIsNamed(t *testing.T) {
	models := filepath.Join(t.TempDir(), "models")
	tiny := []string{"train", "kge", "--entities", "150", "--triples", "2500", "--epochs", "1", "--workers", "1"}
	if code, _, stderr := run(t, append(tiny, "--checkpoint", models)...); code != 0 {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(file, "below"))
	for says, args := range map[string][]string{
		"the model of the checkpoint " + models: {"evaluate", models},
		"embedded etcd: a folder for its data":  append(tiny, "--nodes", "2"),
		"--dashboard: a folder for what it":     append(tiny, "--dashboard", "127.0.0.1:0"),
	} {
		if code, _, stderr := run(t, args...); code != cli.Failure || !strings.Contains(stderr, says) || !strings.Contains(stderr, "not a directory: set TMPDIR to one that can be written to") {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
}
