package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train/task"
)

// limit is when what runs here is held to hang.
const limit = 5 * time.Minute

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ctr-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "ctr")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// A model that knows nothing but how often people click has a log loss of 0.65 and an
// AUC of 0.5.
func learned(t *testing.T, what string, r *job.Result) {
	t.Helper()
	if loss, auc := r.Test.At("log loss"), r.Test.At("AUC"); !(loss < 0.6) || !(auc > 0.7) {
		t.Errorf("%s: log loss %.4f, AUC %.4f, want less than 0.6, and more than 0.7", what, loss, auc)
	}
}

func TestOnOneNodeAndOnFourInOneProcess(t *testing.T) {
	for _, nodes := range []int{1, 4} {
		for _, policy := range []string{"adaptive", "quorum(nodes=1)"} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			spec := job.Default(defaults())
			spec.Nodes, spec.Workers, spec.Policy = nodes, 1, policy
			r, err := job.Local(ctx, "test", spec, job.NodeConfig{})
			if err != nil {
				t.Fatal(err)
			}
			learned(t, fmt.Sprintf("%s, %d nodes", policy, nodes), r)
			if nodes > 1 && policy != "adaptive" && (r.Stats.Moves != 0 || r.Stats.SentBytes == 0) {
				t.Errorf("a policy without moves: %d moves, %d bytes sent", r.Stats.Moves, r.Stats.SentBytes)
			}
		}
	}
}

// An analytic gradient must be what the loss does when a value changes.
func TestTheGradientIsThatOfTheLoss(t *testing.T) {
	s := defaults()
	s.Bits, s.Dim, s.Hidden, s.Impressions = 6, 3, 4, 200
	l, err := s.Load(task.Setup{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := l.(*loaded).m
	tables, err := godwit.NewModel(l.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := node.Local(t.Context(), 1, node.Config{Model: tables, Seed: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	tr, b := trainer{net: net{m: m, w: c.Nodes[0].Worker(0)}}, &batch{}
	if err := tr.pull(t.Context(), tr.gather(b, nil, []int32{1, 5, 9, 30})); err != nil {
		t.Fatal(err)
	}
	loss := func() (sum float64) {
		tr.each(b, func(i int, logit float64) { sum += logLoss(logit, m.data.clicked[b.is[i]]) })
		return sum
	}
	tr.grads = make([]float32, len(tr.vals))
	tr.each(b, func(i int, logit float64) { tr.backward(b, i, slope(logit, m.data.clicked[b.is[i]])) })
	for k := range tr.vals {
		const d = 1e-3
		was := tr.vals[k]
		tr.vals[k] = was + d
		above := loss()
		tr.vals[k] = was - d
		below := loss()
		tr.vals[k] = was
		if want := (above - below) / (2 * d); max(want-float64(tr.grads[k]), float64(tr.grads[k])-want) > 0.01*(1+max(want, -want)) {
			t.Errorf("the gradient of float %d is %v, and the loss rises by %v", k, tr.grads[k], want)
		}
	}
}

// start starts the program. Machines that run tests are busy.
func start(t *testing.T, env string, args ...string) (cmd *exec.Cmd, events func() job.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cmd = exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was waited for, or is of no interest any more
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return cmd, func() (e job.Event) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("%q ended: %v\n%s", args, cmd.Wait(), cmd.Stderr)
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		return e
	}
}

var patient = []string{"--json", "--quiet", "--ttl", "1m", "--join", "4m", "--workers", "1"}

func with(args ...string) []string { return append(append([]string(nil), patient...), args...) }

func exits(t *testing.T, cmd *exec.Cmd, want int) {
	t.Helper()
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("%q: exit code %d, want %d: %v\n%s", cmd.Args[1:], code, want, err, cmd.Stderr)
	}
}

func TestTheProgramStartsItsNodes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	cmd, events := start(t, "", with("--nodes", "3", "--policy", "quorum(nodes=1)", "--bits", "12", "--export", dir)...)
	processes := map[int]bool{}
	for {
		e := events()
		if e.Start != nil {
			for _, p := range e.Start.Nodes {
				processes[p.PID] = true
			}
		}
		if e.Result == nil {
			continue
		}
		if learned(t, "three processes", e.Result); len(processes) != 3 || e.Result.Nodes != 3 || e.Result.Policy != "quorum(nodes=1)" {
			t.Errorf("%d processes; %+v", len(processes), e.Result)
		}
		break
	}
	exits(t, cmd, cli.OK)
	for file, shape := range map[string][2]int{"embeddings.npy": {1 << 12, 8}, "hidden.npy": {16, 49}, "output.npy": {1, 17}} {
		r, err := npy.Open(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if rows, cols := r.Shape(); rows != shape[0] || cols != shape[1] {
			t.Errorf("%s has %d rows of %d, want %v", file, rows, cols, shape)
		}
		r.Close()
	}
}

func TestAnotherProcessOfTheProgramJoins(t *testing.T) {
	args := with("--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0")
	lead, events := start(t, "", args...)
	w := events()
	if w.Waiting == nil {
		t.Fatalf("the first event is %+v", w)
	}
	join := []string{"node", "--quiet", "--etcd", strings.Join(w.Waiting.Endpoints, ","), "--run", w.Run}
	if out, err := exec.Command(binary, join...).CombinedOutput(); err == nil || !strings.Contains(string(out), job.TokenEnv) {
		t.Errorf("without the token: %v\n%s", err, out)
	}
	other, _ := start(t, job.TokenEnv+"="+w.Waiting.Token, join...)
	for e := events(); ; e = events() {
		if e.Result != nil {
			learned(t, "two processes", e.Result)
			break
		}
	}
	exits(t, other, cli.OK)
	exits(t, lead, cli.OK)
}

// With checkpoints it prints a command of this program that goes on.
func TestAnInterruptEndsItInOrder(t *testing.T) {
	cmd, events := start(t, "", with("--nodes", "2", "--epochs", "100000", "--checkpoint", t.TempDir(), "--quiet=false")...)
	var epochs int
	for e := events(); ; e = events() {
		if e.Epoch != nil && e.Epoch.Epoch == 1 {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if e.Result != nil {
			if !e.Result.Interrupted() {
				t.Errorf("the result is %+v", e.Result)
			}
			epochs = e.Result.Epochs
			break
		}
	}
	exits(t, cmd, cli.Interrupted)
	_, command, _ := strings.Cut(fmt.Sprint(cmd.Stderr), "to go on (")
	_, command, _ = strings.Cut(command, filepath.Base(binary)+" ")
	command, _, _ = strings.Cut(command, "\n")
	out, err := exec.CommandContext(t.Context(), binary, append(strings.Fields(command), "--quiet", "--epochs", fmt.Sprint(epochs))...).CombinedOutput()
	if err != nil {
		t.Errorf("%q does not go on: %v\n%s\nafter\n%s", command, err, out, cmd.Stderr)
	}
}

func TestWrongInputIsRefusedInWords(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(bad, []byte("1 a b\n0 c\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "long.txt")
	if err := os.WriteFile(long, []byte("1 a b\n0 c "+strings.Repeat("d", 1<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--dim 0":                  "2 ctr: --dim 0: want 1 … 256",
		"--lr NaN":                 "2 ctr: --lr NaN: want a positive learning rate",
		"--policy quorum(votes=3)": "2 ctr: job: placement: policy \"quorum(votes=3)\": it has no parameter votes, only nodes",
		"--policy clever":          "nonuniform, quorum, relocate",
		"--nodes 2 --data nowhere": "1 ctr: open ",
		"--data " + bad:            bad + ":2: want 1 or 0",
		"--data " + long:           long + ":2: bufio.Scanner: token too long",
		"clicks":                   `2 ctr: unknown command "clicks"`,
		"help clicks":              `2 ctr: there is no command "ctr clicks"`,
		"node --run x":             "2 ctr: --etcd and --run",
		"--listen 127.0.0.1:0":     "--listen has no effect",
		"help node":                "0 Join a run",
		"--help":                   "ctr --nodes 4",
	} {
		out, err := exec.Command(binary, strings.Fields(args)...).CombinedOutput()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if said := fmt.Sprint(code, " ", string(out)); !strings.Contains(said, want) {
			t.Errorf("ctr %s says %s, want %q", args, said, want)
		}
	}
}

func TestImpressionsAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clicks.txt")
	text := strings.Repeat("1 red shoe\n0\tblue\tshoe\n", 10)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := read(file, 20)
	if err != nil || d.fields != 2 || len(d.clicked) != 20 || !d.clicked[0] || d.clicked[1] {
		t.Fatalf("%+v, %v", d, err)
	}
	if a, b := d.row(0), d.row(1); a[0] == b[0] || a[1] != b[1] {
		t.Errorf("rows %v and %v", a, b)
	}
	if n := len(d.split(0)) + len(d.split(1)) + len(d.split(2)); n != 20 || len(d.split(2)) != 2 {
		t.Errorf("%d impressions in all parts, %d to test", n, len(d.split(2)))
	}
}
