package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/godwit-ps/godwit/job"
)

type options struct {
	data   string
	nodes  int
	epochs int
	dim    int
	seeds  int

	gib   int
	phase string // of large, in a process of its own
	dir   string
	args  []string // that are no flags: there are none
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "a graph; empty: a generated one, evaluated after each epoch")
	flag.IntVar(&o.nodes, "nodes", 4, "of the run at its begin, at least 2")
	flag.IntVar(&o.epochs, "epochs", 6, "of a run, at least 3")
	flag.IntVar(&o.dim, "dim", 64, "of the embeddings")
	flag.IntVar(&o.seeds, "seeds", 3, "how many, from 1 on")
	flag.IntVar(&o.gib, "gib", 0, "instead: write a checkpoint of a model of so many GiB, and restore it")
	flag.StringVar(&o.dir, "dir", "", "folder for that, of twice the size (default: that for temporary files)")
	flag.StringVar(&o.phase, "phase", "", "for itself")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "interrupt:", err)
		stop()
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	switch {
	case len(o.args) > 0:
		return fmt.Errorf("unexpected argument %q: there are only flags, which -help lists", o.args[0])
	case o.gib > 0:
		return o.large(ctx, out)
	}
	return o.measure(ctx, out)
}

func (o *options) measure(ctx context.Context, out io.Writer) (err error) {
	if o.nodes < 2 || o.epochs < 3 || o.seeds < 1 {
		return errors.New("want at least 2 nodes, 3 epochs and 1 seed")
	}
	dir, err := os.MkdirTemp("", "godwit-interrupt-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{o, filepath.Join(dir, "godwit"), dir}
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", b.program, "github.com/godwit-ps/godwit/cmd/godwit").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, text)
	}
	if err := b.compare(ctx, out); err != nil {
		return err
	}
	return b.lose(ctx, out)
}

// A bench runs godwit.
type bench struct {
	*options
	program string
	dir     string
}

// compare trains with each seed, undisturbed and killed twice.
func (b *bench) compare(ctx context.Context, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "seed\tundisturbed MRR\tseconds\tkilled twice MRR\tseconds\t\n")
	var plain, killed []float64
	for seed := 1; seed <= b.seeds; seed++ {
		began := time.Now()
		want, err := b.whole(ctx, b.train(seed)...)
		if err != nil {
			return err
		}
		took := time.Since(began)
		began = time.Now()
		got, err := b.interrupted(ctx, seed)
		if err != nil {
			return err
		}
		plain, killed = append(plain, want), append(killed, got)
		fmt.Fprintf(w, "%d\t%.4f\t%.0f\t%.4f\t%.0f\t\n", seed, want, took.Seconds(), got, time.Since(began).Seconds())
	}
	fmt.Fprintf(w, "mean\t%.4f\t\t%.4f\t\t\n", mean(plain), mean(killed))
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "difference of the means %+.4f, spread of undisturbed runs %.4f\n", mean(killed)-mean(plain), slices.Max(plain)-slices.Min(plain)); err != nil {
		return err
	}
	return judge(plain, killed)
}

// leastSpread is a part of the MRR by which means may differ at least: few runs show little of how far they are apart.
const leastSpread = 0.05

// judge returns an error if runs that were killed learned something else than undisturbed ones: their means differ by more than undisturbed runs do
// among each other.
func judge(plain, killed []float64) error {
	differ, most := mean(killed)-mean(plain), max(slices.Max(plain)-slices.Min(plain), leastSpread*mean(plain))
	if !(math.Abs(differ) <= most) {
		return fmt.Errorf("runs that were killed twice have a mean MRR of %.4f, and undisturbed ones one of %.4f: want them apart by %.4f at the most", mean(killed), mean(plain), most)
	}
	return nil
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// train is the command line of an undisturbed run.
func (b *bench) train(seed int) []string {
	args := []string{"train", "kge", "--dim", strconv.Itoa(b.dim), "--epochs", strconv.Itoa(b.epochs), "--nodes", strconv.Itoa(b.nodes), "--seed", strconv.Itoa(seed), "--json"}
	if b.data == "" { // which is trained before the first checkpoint falls due: there is one when an epoch made the model better
		return append(args, "--eval-every", "1")
	}
	return append(args, "--data", b.data)
}

// interrupted trains on all nodes, on one less, and on one; each but the last is killed within an epoch.
func (b *bench) interrupted(ctx context.Context, seed int) (float64, error) {
	place := filepath.Join(b.dir, fmt.Sprint("runs-", seed))
	args := append(b.train(seed), "--checkpoint", place)
	for i, nodes := range []int{b.nodes, b.nodes - 1} {
		if i > 0 {
			args = []string{"train", "--resume", place, "--nodes", strconv.Itoa(nodes), "--json"}
		}
		r, err := b.start(ctx, args...)
		if err != nil {
			return 0, err
		}
		if err := r.within((i + 1) * b.epochs / 3); err != nil {
			return 0, err
		}
		r.kill()
	}
	return b.whole(ctx, "train", "--resume", place, "--nodes", "1", "--json")
}

// lose kills one node within an epoch.
func (b *bench) lose(ctx context.Context, out io.Writer) error {
	r, err := b.start(ctx, append(b.train(1), "--checkpoint", filepath.Join(b.dir, "runs-lost"))...)
	if err != nil {
		return err
	}
	defer r.kill()
	if err := r.within(b.epochs / 3); err != nil {
		return err
	}
	ended, epoch, lost := r.ended, r.epoch, time.Now()
	if err := syscall.Kill(r.nodes[len(r.nodes)-1].PID, syscall.SIGKILL); err != nil {
		return err
	}
	if _, err := r.until(func(e *job.Event) bool { return e.Start != nil }); err != nil {
		return err
	}
	again := time.Since(lost)
	if len(r.nodes) != b.nodes-1 {
		return fmt.Errorf("%d nodes train again after one of %d was killed, want %d", len(r.nodes), b.nodes, b.nodes-1)
	}
	if _, err := r.until(func(e *job.Event) bool { return e.Epoch != nil && e.Epoch.Epoch > ended }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "one of %d nodes killed in epoch %d: %d nodes train again after %.1f s, and that epoch was complete after %.1f s; the one before it took %.1f s\n",
		b.nodes, ended+1, len(r.nodes), again.Seconds(), time.Since(lost).Seconds(), epoch.Seconds())
	return err
}

// whole runs godwit to its end and returns the MRR on the test data.
func (b *bench) whole(ctx context.Context, args ...string) (float64, error) {
	r, err := b.start(ctx, args...)
	if err != nil {
		return 0, err
	}
	defer r.kill()
	e, err := r.until(func(e *job.Event) bool { return e.Result != nil })
	if err != nil {
		return 0, err
	}
	for _, m := range e.Result.Test {
		if m.Name == "MRR" {
			return m.Value, nil
		}
	}
	return math.NaN(), errors.New("the result has no MRR")
}

// A run is a godwit process and those that it started. It must be killed.
type run struct {
	cmd    *exec.Cmd
	events *bufio.Reader
	nodes  []job.Peer
	ended  int           // the last epoch that ended
	epoch  time.Duration // it took so long
}

func (b *bench) start(ctx context.Context, args ...string) (*run, error) {
	cmd := exec.CommandContext(ctx, b.program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr // what godwit tells people
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, events: bufio.NewReader(out)}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return r, cmd.Start()
}

// kill kills all processes of the run, and waits for the first one.
func (r *run) kill() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // they may have ended
	_ = r.cmd.Wait()                                      // it was killed
}

// until reads events up to one for which ok is true.
func (r *run) until(ok func(e *job.Event) bool) (*job.Event, error) {
	for {
		line, err := r.events.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%v ended too early: %w", r.cmd.Args, err)
		}
		var e job.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if e.Start != nil {
			r.nodes = e.Start.Nodes
		}
		if e.Epoch != nil {
			r.ended, r.epoch = e.Epoch.Epoch, time.Duration(e.Epoch.Seconds*float64(time.Second))
		}
		if ok(&e) {
			return &e, nil
		}
	}
}

// within returns when the run is about in the middle of an epoch after a number of epochs, and has written a checkpoint.
func (r *run) within(epochs int) error {
	written, trained := false, false
	_, err := r.until(func(e *job.Event) bool {
		written = written || e.Checkpoint != nil && e.Checkpoint.Error == ""
		trained = trained || e.Epoch != nil && e.Epoch.Epoch >= epochs
		return written && trained
	})
	time.Sleep(r.epoch / 2)
	return err
}
