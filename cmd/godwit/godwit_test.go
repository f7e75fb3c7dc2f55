package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

// binary is the real command, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		// Whoever runs the tests may have SIGHUP ignored, which processes inherit; one
		// that is caught here is as usual there.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		dir, err := os.MkdirTemp("", "godwit-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		// Processes that are killed leave what they had there.
		if err := os.Setenv("TMPDIR", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(dir, "godwit")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the command: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// small are the flags of a run of a second or less.
var small = []string{"train", "kge", "--entities", "150", "--relations", "5", "--triples", "2500", "--dim", "16", "--batch", "64", "--negatives", "50", "--epochs", "3"}

// patient are flags of a run whose nodes a busy machine may keep from running for
// a minute, and from starting for some. Flags of a test come behind them.
var patient = []string{"--ttl", "1m", "--join", "4m"}

func with(flags ...string) []string { return append(append([]string(nil), small...), flags...) }

// A proc is a running command. Its events are those of --json.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan job.Event // closed at the end of stdout
	done   chan struct{}  // closed when it has ended
	err    error          // how, after done

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// limit is when a test's process is held to hang: long after anything that a
// machine can make of a second of work.
const limit = 4 * time.Minute

func start(t *testing.T, args ...string) *proc {
	t.Helper()
	p := prepare(t, args...)
	p.start()
	return p
}

// startAs starts a command that gives a token to the run's etcd.
func startAs(t *testing.T, token string, args ...string) *proc {
	t.Helper()
	p := prepare(t, args...)
	p.cmd.Env = append(os.Environ(), job.TokenEnv+"="+token)
	p.start()
	return p
}

// prepare makes a command that is yet to be started.
func prepare(t *testing.T, args ...string) *proc {
	if args[0] == "train" {
		args = slices.Insert(slices.Clone(args), 2, patient...)
	}
	return &proc{t: t, cmd: exec.Command(binary, args...), events: make(chan job.Event, 1<<16), done: make(chan struct{})}
}

func (p *proc) start() {
	t := p.t
	t.Helper()
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
	var readers sync.WaitGroup
	readers.Go(func() { p.readEvents(out) })
	readers.Go(func() {
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			p.mu.Lock()
			p.stderr.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
	})
	go func() {
		readers.Wait()
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	})
}

func (p *proc) readEvents(r io.Reader) {
	defer close(p.events)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.stdout.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var e job.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			p.events <- e
		}
	}
}

func (p *proc) said() (stdout, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String(), p.stderr.String()
}

// until returns the first event that is looked for.
func (p *proc) until(what string, is func(job.Event) bool) job.Event {
	p.t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				_, stderr := p.said()
				p.t.Fatalf("it ended before %s\n%s", what, stderr)
			}
			if is(e) {
				return e
			}
		case <-timeout:
			_, stderr := p.said()
			p.t.Fatalf("no %s within %v\n%s", what, limit, stderr)
		}
	}
}

func isStart(e job.Event) bool  { return e.Start != nil }
func isEpoch(e job.Event) bool  { return e.Epoch != nil }
func isResult(e job.Event) bool { return e.Result != nil }

// wait returns the exit code, which must come within a time.
func (p *proc) wait(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		_, stderr := p.said()
		p.t.Fatalf("it still ran after %v\n%s", within, stderr)
	}
	var e *exec.ExitError
	switch {
	case p.err == nil:
		return 0
	case errors.As(p.err, &e):
		return e.ExitCode()
	}
	p.t.Fatal(p.err)
	return -1
}

// exits checks the exit code.
func (p *proc) exits(want int, within time.Duration) {
	p.t.Helper()
	if got := p.wait(within); got != want {
		_, stderr := p.said()
		p.t.Fatalf("exit code %d, want %d\n%s", got, want, stderr)
	}
}

// gone checks that none of the processes of a run is left.
func gone(t *testing.T, e job.Event, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for _, n := range e.Start.Nodes {
		for runs(n.PID) {
			if time.Now().After(deadline) {
				t.Errorf("process %d of node %d is left", n.PID, n.ID)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// runs reports whether a process has not ended. One that has may stay for ever
// where its parent ended before it and nobody waits for orphans, as in some
// containers.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runAs(t, "", args...)
}

func runAs(t *testing.T, token string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := startAs(t, token, args...)
	code = p.wait(limit)
	stdout, stderr = p.said()
	return code, stdout, stderr
}

// fullDevice is a file that takes nothing.
func fullDevice(t *testing.T) *os.File {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full: ", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// What a program was to read and could not be written is a failure, though the run ended well.
func TestAResultThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	full := fullDevice(t)
	for _, args := range [][]string{append(slices.Clone(small), "--json"), small, {"version"}, {"help"}, {"train", "kge", "--help"}} {
		var errs strings.Builder
		p := prepare(t, args...)
		p.cmd.Stdout, p.cmd.Stderr = full, &errs
		if err := p.cmd.Run(); p.cmd.ProcessState.ExitCode() != cli.Failure || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("godwit %s: %v, %s", strings.Join(args, " "), err, errs.String())
		}
	}
}

// What nobody reads of a run that ended well is no failure.
func TestALegendThatCannotBeWrittenIsNoFailure(t *testing.T) {
	t.Parallel()
	full := fullDevice(t)
	p := prepare(t, small...)
	p.cmd.Stderr = full
	if out, err := p.cmd.Output(); err != nil || !strings.Contains(string(out), "adaptive") {
		t.Errorf("%v; it prints\n%s", err, out)
	}
}

func TestOneNodeTrainsAndPrintsATable(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, small...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "Hits@10") || !strings.Contains(lines[1], "adaptive") {
		t.Errorf("the table is\n%s", out)
	}
	for _, want := range []string{"untrained: MRR", "epoch 3/3: loss", "after epoch 3: valid MRR", "MRR and Hits"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr has no %q:\n%s", want, errs)
		}
	}
}

func TestThreeNodesTellInJSONWhatHappens(t *testing.T) {
	t.Parallel()
	p := start(t, with("--nodes", "3", "--json", "--eval-every", "2")...)
	began := p.until("start", isStart)
	if n := began.Start.Nodes; len(n) != 3 || n[0].PID == n[1].PID || n[1].PID == n[2].PID {
		t.Errorf("the nodes are %+v, want three processes", n)
	}
	e := p.until("an epoch", isEpoch)
	if e.Epoch.Epoch != 1 || e.Epoch.Of != 3 || e.Epoch.Items < 2300 || e.Epoch.Items > 2450 || e.Epoch.Stats.Accesses() == 0 {
		t.Errorf("the first epoch is %+v, want 1 of 3, all of the about 2375 triples to train, and accesses", e.Epoch)
	}
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	gone(t, began, 0)
	if r.Nodes != 3 || r.Epochs != 3 || !(r.Test.At("MRR") > r.Untrained.At("MRR")) || r.Stats.SentBytes == 0 || r.Interrupted() {
		t.Errorf("the result is %+v", r)
	}
	out, _ := p.said()
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestEveryNodeProcessWritesItsProfile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "profile")
	if code, _, errs := run(t, with("--nodes", "2", "--quiet", "--profile", dir)...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	for _, node := range []string{"node-0", "node-1"} {
		for _, kind := range []string{"cpu", "mutex", "block", "allocs"} {
			path := filepath.Join(dir, node+"."+kind+".pprof")
			if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
				t.Errorf("%s holds %d bytes, %v, want what gzip begins with", path, len(b), err)
			}
		}
	}
}

// The leader tells that a process which it started could not write its profile. That is no lost node, and the run ends well: it is not begun again.
func TestAProfileThatANodeProcessCannotWriteIsToldAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "profile")
	taken := []string{filepath.Join(dir, "node-0.cpu.pprof"), filepath.Join(dir, "node-1.cpu.pprof")}
	for _, path := range taken {
		if err := os.MkdirAll(filepath.Join(path, "else"), 0o777); err != nil { // no file takes its place
			t.Fatal(err)
		}
	}
	code, out, errs := run(t, with("--nodes", "2", "--quiet", "--profile", dir, "--checkpoint", filepath.Join(t.TempDir(), "runs"))...)
	told := strings.HasPrefix(errs, "godwit: ") && strings.Contains(errs, taken[0]+":") && strings.Contains(errs, taken[1]+":")
	if code != 1 || !strings.Contains(out, "MRR") || !told {
		t.Errorf("exit code %d; stdout has\n%s\nand stderr\n%s", code, out, errs)
	}
}

func TestPoliciesAreComparedInOneTable(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, with("--policies", "adaptive,static", "--nodes", "2", "--quiet")...)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, and with --quiet stderr has\n%s", code, errs)
	}
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "adaptive") || !strings.Contains(lines[2], "static") {
		t.Errorf("the table is\n%s", out)
	}
}

func TestHelpSaysWhatCanBeSet(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"help":             {"godwit demo", "Exit codes:", "train", "node", "version"},
		"train kge --help": {"Nodes:", "Model:", "Training:", "--policies", "godwit train kge --nodes 4", "Exit codes:"},
		"help node":        {"--nodes 2 --await", "--etcd"},
		"demo --help":      {"four"},
		"version":          {"godwit "},
	} {
		code, out, errs := run(t, strings.Fields(args)...)
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("godwit %s: exit code %d, and stdout has no %q:\n%s%s", args, code, w, out, errs)
			}
		}
	}
}

// A command that ends with codes of its own does not list those of the others beside them.
func TestAHelpListsExitCodesOnce(t *testing.T) {
	t.Parallel()
	helps(t, func(cmd *cobra.Command, help string) {
		if strings.Count(help, "Exit codes:") > 1 {
			t.Errorf("the help of %q has exit codes more than once:\n%s", cmd.CommandPath(), help)
		}
		_, codes, _ := strings.Cut(help, "Exit codes:")
		if codes, _, _ = strings.Cut(codes, "\n\n"); cmd.Flags().Lookup("export") == nil && strings.Contains(codes, "export") {
			t.Errorf("the exit codes of %q speak of an export, which it does not write:\n%s", cmd.CommandPath(), codes)
		}
	})
	for _, name := range []string{"demo", "explain", "top", "diagnose"} {
		if _, out, _ := asked(t, "", name, "--help"); !strings.Contains(out, "Exit codes:\n  0 ") || strings.Contains(out, "\n  4 ") != (name == "diagnose") {
			t.Errorf("the help of %s has other exit codes than its own:\n%s", name, out)
		}
	}
}

func TestAHelpListsEachFlagOfItsCommand(t *testing.T) {
	t.Parallel()
	helps(t, func(cmd *cobra.Command, help string) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			line := regexp.MustCompile(`(?m)^ +(-., )?--` + f.Name + `\b`)
			if !f.Hidden && f.Name != "help" && !line.MatchString(help) {
				t.Errorf("the help of %q has no --%s:\n%s", cmd.CommandPath(), f.Name, help)
			}
		})
	})
}

// helps calls do with each command and its help.
func helps(t *testing.T, do func(cmd *cobra.Command, help string)) {
	t.Helper()
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Errorf("the help of %q: %v", cmd.CommandPath(), err)
		}
		do(cmd, out.String())
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root())
}

func TestAMissingGraphIsNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "nowhere")
	for _, nodes := range []string{"1", "2"} {
		code, _, errs := run(t, "train", "kge", "--data", dir, "--nodes", nodes)
		if code != cli.Failure || !strings.Contains(errs, dir) {
			t.Errorf("%s nodes: exit code %d, want %d, and a message with %s:\n%s", nodes, code, cli.Failure, dir, errs)
		}
	}
}

func TestAnInterruptKeepsWhatWasTrained(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{"1", "3"} {
		dir := filepath.Join(t.TempDir(), "embeddings")
		p := start(t, with("--epochs", "100000", "--nodes", nodes, "--json", "--export", dir)...)
		began := p.until("start", isStart)
		p.until("an epoch", isEpoch)
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		r := p.until("the result", isResult).Result
		p.exits(cli.Interrupted, limit)
		gone(t, began, 0)
		if !r.Interrupted() || r.Epochs < 1 || !(r.Test.At("MRR") > 0) || r.Reason == "" {
			t.Errorf("%s nodes: the result is %+v", nodes, r)
		}
		for _, f := range []string{"entities.npy", "relations.npy", "entities.txt", "relations.txt"} {
			if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestASecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	// The first one waits for the other node, which never comes to its batch and
	// is not held to be lost while the test lasts.
	p := start(t, with("--epochs", "100000", "--nodes", "2", "--json", "--ttl", "1h")...)
	began := p.until("start", isStart)
	p.until("an epoch", isEpoch)
	other := began.Start.Nodes[1-began.Start.Self].PID
	if err := syscall.Kill(other, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(other, syscall.SIGKILL) }) // it should be gone
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.until("word that it stops", func(e job.Event) bool { return e.Stopping != "" })
	time.Sleep(300 * time.Millisecond) // sooner, it is taken for the first one, doubled
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.exits(cli.Interrupted, limit)
	gone(t, began, limit)
}

func TestALostNodeEndsTheRunAndIsNamed(t *testing.T) {
	t.Parallel()
	p := start(t, with("--epochs", "100000", "--nodes", "3", "--json", "--ttl", ttl)...)
	began := p.until("start", isStart)
	p.until("an epoch", isEpoch)
	var lost job.Peer
	for _, n := range began.Start.Nodes {
		if n.PID != p.cmd.Process.Pid {
			lost = n
		}
	}
	if err := syscall.Kill(lost.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.exits(cli.Lost, limit)
	gone(t, began, 0)
	if _, errs := p.said(); !strings.Contains(errs, fmt.Sprintf("node %d (%s)", lost.ID, lost.Addr)) {
		t.Errorf("node %d at %s is not named:\n%s", lost.ID, lost.Addr, errs)
	}
}

// ttl is how long a machine may starve a node of a test before it counts as
// lost, which a test that kills one waits for.
const ttl = "8s"

func TestAProcessEndsWhenItsLeaderIsKilled(t *testing.T) {
	t.Parallel()
	p := start(t, with("--epochs", "100000", "--nodes", "2", "--json", "--ttl", ttl)...)
	began := p.until("start", isStart)
	p.until("an epoch", isEpoch)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, began, limit)
}

// otherEtcd starts an etcd that is not the run's, until the test is over, and
// returns where it is, and its token.
func otherEtcd(t *testing.T) (at, token string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := server.Start(ctx, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Endpoints()[0], s.Token()
}

// Before the run has begun, nobody else could tell a node that its leader is gone.
func TestANodeThatWaitsForTheRunToBeginEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	at, token := otherEtcd(t)
	lead := startAs(t, token, with("--nodes", "2", "--await", "--etcd", at, "--run", "known", "--listen", "127.0.0.1:0", "--json")...)
	lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	if err := lead.cmd.Process.Kill(); err != nil { // it has left its description, and never comes back
		t.Fatal(err)
	}
	<-lead.done
	for _, run := range []string{"known", "unknown"} {
		node := prepare(t, "node", "--etcd", at, "--run", run, "--wait", "1h", "--leader", "123456")
		node.cmd.Env = append(os.Environ(), job.TokenEnv+"="+token)
		stdin, err := node.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		node.start()
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		code := node.wait(limit)
		if _, errs := node.said(); code != cli.Failure || !strings.Contains(errs, "process 123456") || !strings.Contains(errs, run) {
			t.Errorf("%s: exit code %d\n%s", run, code, errs)
		}
	}
}

func TestANodeJoinsByEndpointAndName(t *testing.T) {
	t.Parallel()
	lead := start(t, with("--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--json")...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	if w.Waiting.Nodes != 1 || len(w.Waiting.Endpoints) != 1 {
		t.Fatalf("it waits as %+v, want for 1 node at 1 endpoint", w.Waiting)
	}
	command := job.TokenEnv + "=" + w.Waiting.Token + " godwit node --etcd " + w.Waiting.Endpoints[0] + " --run " + w.Run
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		_, errs := lead.said()
		if strings.Contains(errs, command) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the command to run is not told:\n%s", errs)
		}
	}
	dir := t.TempDir()
	other := startAs(t, w.Waiting.Token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--json", "--workers", "2", "--export", dir)
	mine, its := lead.until("the result", isResult).Result, other.until("the result", isResult).Result
	lead.exits(cli.OK, limit)
	other.exits(cli.OK, limit)
	if mine.Test.At("MRR") != its.Test.At("MRR") || mine.Stats.Accesses() != its.Stats.Accesses() {
		t.Errorf("the results differ: %+v and %+v", mine, its)
	}
	if _, err := os.Stat(filepath.Join(dir, "entities.npy")); err != nil || its.Exported != dir {
		t.Errorf("the node that joined should have exported to %s: %v, %q", dir, err, its.Exported)
	}
}

func TestAnEtcdThatIsThereServesRunAfterRun(t *testing.T) {
	t.Parallel()
	at, token := otherEtcd(t)
	for range 2 {
		if code, _, errs := runAs(t, token, with("--nodes", "2", "--etcd", at, "--run", "again", "--epochs", "1")...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, errs)
		}
	}
	// Nothing is left for a node that comes too late.
	patiently(t, func(wait time.Duration) error {
		code, _, errs := runAs(t, token, "node", "--etcd", at, "--run", "again", "--wait", wait.String())
		if code != cli.Failure && code != cli.Lost || !strings.Contains(errs, "nobody has stored a configuration") {
			return fmt.Errorf("a late node: exit code %d\n%s", code, errs)
		}
		return nil
	})
}

// patiently tries something that takes a time and fails if a process does not
// come to do its part in that time. While it fails, the next attempt gets more.
func patiently(t *testing.T, attempt func(within time.Duration) error) {
	t.Helper()
	for within := time.Second; ; within *= 5 {
		err := attempt(within)
		switch {
		case err == nil:
			return
		case 5*within > limit:
			t.Fatal(err)
		}
		t.Logf("not within %v: %v", within, err)
	}
}

func TestANodeThatNeverComesEndsTheWait(t *testing.T) {
	t.Parallel()
	patiently(t, func(join time.Duration) error {
		code, _, errs := run(t, with("--nodes", "3", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--join", join.String())...)
		if code != cli.Lost || !strings.Contains(errs, "not all nodes arrived") || !strings.Contains(errs, "1 of 3") {
			return fmt.Errorf("exit code %d, want %d, and it says\n%s", code, cli.Lost, errs)
		}
		return nil
	})
}

func TestAnInterruptEndsTheWaitForNodes(t *testing.T) {
	t.Parallel()
	p := start(t, with("--nodes", "3", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--json")...)
	p.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.exits(cli.Interrupted, limit)
}

// Without the folder of a run, it is told what is missing, and not that a file without a name is not there.
func TestExplainWantsAFolder(t *testing.T) {
	if code, _, errs := run(t, "explain", "5"); code != cli.WrongUsage || !strings.Contains(errs, "--run") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A learning curve that cannot be written any more is told once, even if nothing but errors is to be said, and the run goes on.
func TestACurveThatCannotBeWrittenIsToldToTheQuiet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "curves")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	p := start(t, append(slices.Clone(small), "--epochs", "100000", "--quiet", "--json", "--plot", filepath.Join(dir, "c.svg"))...)
	<-p.events
	if err := os.Rename(dir, dir+".gone"); err != nil { // in one piece: a curve may be written into it now
		t.Fatal(err)
	}
	const told = "the learning curve is not written"
	said := func() int {
		_, errs := p.said()
		return strings.Count(errs, told)
	}
	for deadline := time.Now().Add(limit); said() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was told")
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.exits(cli.Interrupted, limit)
	if n := said(); n != 1 {
		t.Errorf("it was told %d times", n)
	}
}
