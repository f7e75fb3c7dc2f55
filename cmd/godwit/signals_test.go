package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

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
	}{{syscall.SIGTERM, "1"}, {syscall.SIGHUP, "2"}, {syscall.SIGINT, "1"}} {
		dir := filepath.Join(t.TempDir(), "embeddings")
		p := start(t, with("--epochs", "100000", "--nodes", x.nodes, "--json", "--export", dir)...)
		began := p.until("start", isStart)
		p.until("an epoch", isEpoch)
		for range 3 {
			p.send(x.s)
		}
		at := p.until("a checkpoint", isCheckpoint).Checkpoint
		epochs := max(at.Epoch, at.Within)
		r := p.until("the result", isResult).Result
		if !r.Interrupted() {
			t.Errorf("%v: the result is %+v", x.s, r)
		}
		p.exits(cli.Interrupted, limit)
		gone(t, began, 0)
		if _, err := os.Stat(filepath.Join(dir, "entities.npy")); err != nil {
			t.Error(err)
		}
		if _, errs := p.said(); !strings.Contains(errs, " train kge --resume "+at.Place) {
			t.Errorf("%v: it says\n%s", x.s, errs)
		}
		code, out, errs := run(t, "train", "--resume="+at.Place, "--epochs", fmt.Sprint(epochs), "--json")
		if code != 0 || result(t, out).Epochs != epochs {
			t.Errorf("resumed to epoch %d: exit code %d\n%s", epochs, code, errs)
		}
		// Another run with the export leaves what is there where it can be found.
		if code, _, errs := run(t, with("--export", dir)...); code != 0 {
			t.Error(errs)
		}
		if _, err := os.Stat(job.Beside(dir) + ".former"); err != nil {
			t.Error(err)
		}
	}
}

func TestAnInterruptWithoutExportSaysThatNothingIsKept(t *testing.T) {
	t.Parallel()
	p := start(t, with("--epochs", "100000", "--json")...)
	p.until("an epoch", isEpoch)
	p.send(syscall.SIGTERM)
	p.exits(cli.Interrupted, limit)
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
	p.exits(cli.Interrupted, limit)
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
	p.exits(cli.Interrupted, limit)
	if _, errs := p.said(); strings.Count(errs, "godwit: stopping") != 1 {
		t.Errorf("it says\n%s", errs)
	}
}
