package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRepeatedSignalsCountOnce(t *testing.T) {
	t.Parallel()
	const interrupt, term, hup = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP
	type press struct {
		s     os.Signal
		after time.Duration // the one before
		want  bool
	}
	for _, presses := range [][]press{
		{{interrupt, 0, true}, {interrupt, 0, true}, {interrupt, time.Hour, true}},
		{{term, 0, true}, {term, 0, false}, {term, time.Second, false}, {term, time.Second, true}},
		{{hup, 0, true}, {term, 1999 * time.Millisecond, false}, {hup, time.Millisecond, true}},
		{{interrupt, 0, true}, {hup, time.Second, false}, {interrupt, 0, true}, {term, time.Second, false}, {term, time.Second, true}},
		{{term, time.Second, true}, {interrupt, 0, true}},
	} {
		var c tally
		at := time.Now()
		for i, p := range presses {
			at = at.Add(p.after)
			if got := c.take(p.s, at); got != p.want {
				t.Errorf("signal %d of %v counts: %v", i, presses, got)
			}
		}
	}
}

// send signals a process.
func (p *proc) send(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func TestTimeoutAndTheTerminalEndARunInOrder(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		s     syscall.Signal
		nodes string
	}{{syscall.SIGTERM, "1"}, {syscall.SIGHUP, "2"}} {
		dir := filepath.Join(t.TempDir(), "embeddings")
		p := start(t, with("--epochs", "100000", "--nodes", x.nodes, "--json", "--export", dir)...)
		began := p.until("start", isStart)
		p.until("an epoch", isEpoch)
		for range 3 {
			p.send(x.s)
		}
		if r := p.until("the result", isResult).Result; !r.Interrupted() {
			t.Errorf("%v: the result is %+v", x.s, r)
		}
		p.exits(exitInterrupted, limit)
		gone(t, began, 0)
		if _, err := os.Stat(filepath.Join(dir, "entities.npy")); err != nil {
			t.Error(err)
		}
	}
}

func TestAnInterruptWithoutExportSaysThatNothingIsKept(t *testing.T) {
	t.Parallel()
	p := start(t, with("--epochs", "100000", "--json")...)
	p.until("an epoch", isEpoch)
	p.send(syscall.SIGTERM)
	p.exits(exitInterrupted, limit)
	if _, errs := p.said(); !strings.Contains(errs, "no --export: the model is not kept") {
		t.Errorf("it says\n%s", errs)
	}
}

// A terminal that closes sends SIGHUP and takes stdout and stderr with it.
func TestARunOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "embeddings")
	p := prepare(t, with("--epochs", "100000", "--json", "--export", dir)...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it should be gone
	buf := make([]byte, 1<<12)
	for said := ""; !strings.Contains(said, `"epoch":{`); {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("it ended after %s: %v", said, err)
		}
		said += string(buf[:n])
	}
	out.Close()
	errs.Close()
	time.Sleep(300 * time.Millisecond) // in which it writes some epochs to nobody
	p.send(syscall.SIGHUP)
	p.err = p.cmd.Wait()
	close(p.done)
	p.exits(exitInterrupted, limit)
	if _, err := os.Stat(filepath.Join(dir, "entities.npy")); err != nil {
		t.Error(err)
	}
}

func TestNohupIsRespected(t *testing.T) {
	t.Parallel()
	p := prepare(t, with("--epochs", "100000", "--json")...)
	p.cmd = exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, p.cmd.Args...)...)
	p.start()
	p.until("an epoch", isEpoch)
	p.send(syscall.SIGHUP)
	for range 3 { // it goes on
		p.until("an epoch", isEpoch)
	}
	p.send(syscall.SIGTERM)
	p.exits(exitInterrupted, limit)
	if _, errs := p.said(); strings.Count(errs, "godwit: stopping") != 1 {
		t.Errorf("it says\n%s", errs)
	}
}
