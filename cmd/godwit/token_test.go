package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

var awaiting = []string{"--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0"}

// told returns the command that a node prints for the others.
func (p *proc) told() string {
	p.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		_, errs := p.said()
		for _, line := range strings.Split(errs, "\n") {
			if strings.Contains(line, "godwit node ") {
				return strings.TrimSpace(line)
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the command to run is not told:\n%s", errs)
		}
	}
}

func TestTheCommandThatIsPrintedCanBePasted(t *testing.T) {
	t.Parallel()
	lead := start(t, with(awaiting...)...)
	command := lead.told()
	shell := exec.Command("sh", "-c", command)
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	lead.exits(cli.OK, limit)
}

func TestANodeWithoutTheTokenIsRefused(t *testing.T) {
	t.Parallel()
	lead := start(t, with(append(awaiting, "--json")...)...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	for token, says := range map[string]string{
		"":                       "was given none",
		"not-the-token-at-all":   "was given another",
		"user:and-a-password":    "was given none",
		w.Waiting.Token[:20]:     "was given another",
		w.Waiting.Token + "more": "was given another",
	} {
		begin := time.Now()
		code, _, errs := runAs(t, token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--wait", "1h")
		if code != cli.Failure || !strings.Contains(errs, says) || !strings.Contains(errs, job.TokenEnv+"=TOKEN") || !strings.Contains(errs, w.Waiting.Endpoints[0]) {
			t.Errorf("with %q: exit code %d, want %d, and %q:\n%s", token, code, cli.Failure, says, errs)
		}
		if d := time.Since(begin); d > limit {
			t.Errorf("with %q: it was refused after %v", token, d)
		}
	}
	if code, _, errs := runAs(t, "two words", "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run); code != cli.WrongUsage || !strings.Contains(errs, job.TokenEnv) {
		t.Errorf("with a blank: exit code %d, want %d\n%s", code, cli.WrongUsage, errs)
	}
}

func TestATokenCanBeAgreedOnBeforehand(t *testing.T) {
	t.Parallel()
	const token = "agreed-on-beforehand"
	lead := startAs(t, token, with(append(awaiting, "--json", "--run", "agreed")...)...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	if command := lead.told(); w.Waiting.Token != "" || strings.Contains(command, token) || !strings.HasPrefix(command, job.TokenEnv+"=TOKEN ") {
		t.Errorf("it prints a token that somebody keeps: %+v, %s", w.Waiting, command)
	}
	if code, _, errs := runAs(t, token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", "agreed"); code != cli.OK {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	lead.exits(cli.OK, limit)
	for _, bad := range []string{"short", "user:password"} {
		if code, _, errs := runAs(t, bad, with("--nodes", "2")...); code != cli.WrongUsage || !strings.Contains(errs, job.TokenEnv) {
			t.Errorf("with %q: exit code %d, want %d\n%s", bad, code, cli.WrongUsage, errs)
		}
	}
}

// All users of a machine see the command lines of all processes.
func TestNoCommandLineShowsTheToken(t *testing.T) {
	t.Parallel()
	p := start(t, with("--nodes", "2", "--json", "--epochs", "1000")...)
	began := p.until("start", isStart)
	read := func(pid int, file string) []byte {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			t.Skipf("what processes are like cannot be read here: %v", err)
		}
		return b
	}
	var token string
	for _, v := range bytes.Split(read(began.Start.Nodes[1].PID, "environ"), []byte{0}) {
		if s, ok := strings.CutPrefix(string(v), job.TokenEnv+"="); ok {
			token = s
		}
	}
	if len(token) < 16 {
		t.Fatalf("a node that was started here has the token %q", token)
	}
	for _, n := range began.Start.Nodes {
		if line := read(n.PID, "cmdline"); len(line) == 0 || bytes.Contains(line, []byte(token)) {
			t.Errorf("the command line of node %d is %q", n.ID, line)
		}
	}
	if out, errs := p.said(); strings.Contains(out+errs, token) {
		t.Error("a run that waits for nobody tells its token")
	}
}
