package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// A result is a file of figures and the command that measures them.
type result struct {
	name  string   // of the file, without .csv
	args  []string // of godwit
	plots []string // that are kept, as the command names them or "made=kept", without .svg
}

func measured(name, args string, plots ...string) result {
	return result{name: name, args: strings.Fields(args), plots: plots}
}

// best compares adaptive with the best of the others. A step, and what nodes are charged, are as they were measured on an idle machine, so that
// the run can repeat.
func best(task, step, nodes string) result {
	return measured("best-"+task, "experiment best --task "+task+" --nodes "+nodes+" --step "+step+" --costs docs/results/costs-cached.json")
}

// trained is a result of training on simulated nodes, of one seed. What they are charged is for models that the caches hold, as they do those that are trained here.
func trained(name, args string, plots ...string) result {
	return measured(name, args+" --seeds 1 --costs docs/results/costs-cached.json", plots...)
}

// What the pages show. Steps are given where a run can repeat.
var results = []result{
	trained("scaling-single", "experiment scaling --calls single --step 160us --epochs 3 --policies static,adaptive --nodes 1,2,4,8", "scaling-100g=scaling-single-100g"),
	trained("scaling", "experiment scaling --step 500us --policies static,adaptive --nodes 1,2,4,8", "scaling-100g"),
	trained("scaling-mf", "experiment scaling --step 500us --task mf --policies static,adaptive --nodes 1,2,4,8"),
	trained("scaling-w2v", "experiment scaling --step 500us --task w2v --epochs 4 --policies static,adaptive --nodes 1,2,4,8"),
	trained("techniques", "experiment techniques --step 500us", "techniques-100g-effective"),
	trained("techniques-mf", "experiment techniques --step 500us --task mf"),
	trained("techniques-w2v", "experiment techniques --step 500us --task w2v --policies static,replicate,relocate,nonuniform,adaptive"),
	trained("sampling", "experiment sampling --step 500us"),
	measured("timing", "experiment timing --step 20us", "timing-replicas"),
	measured("delay", "experiment delay --step 300us", "delay-time", "delay-waiting"),
	measured("delay-real", "experiment delay --real --nodes 2"),
	measured("filters", "experiment filters --step 200us", "filters-blocks"),
	measured("sketch", "experiment sketch --step 20us", "sketch"),
	measured("sketch-real", "experiment sketch --real"),
	best("kge", "19478ns", "4,8"),
	best("w2v", "10us", "4"),
	best("mf", "91ns", "4"),
	best("linear", "2us", "4"),
	best("lda", "8754ns", "4"),
	best("sketch", "4675ns", "4"),
	measured("bench", "bench local skew training fill"),
	measured("bench-remote", "bench remote"),
}

func main() {
	var o options
	list := flag.Bool("list", false, "list names and commands, and run none")
	flag.StringVar(&o.match, "match", "", "only those whose name matches this regular `expression`")
	flag.BoolVar(&o.quick, "quick", false, "smaller: experiments with --quick, a tenth of a second for each case of bench")
	flag.StringVar(&o.out, "out", filepath.Join("docs", "results"), "folder of the figures")
	flag.StringVar(&o.plots, "plots", "", "folder of the plots (default: docs/experiments, or -out where that is given)")
	flag.Parse()
	o.args = flag.Args()
	if o.plots == "" {
		o.plots = o.out
		if o.out == filepath.Join("docs", "results") {
			o.plots = filepath.Join("docs", "experiments")
		}
	}
	if *list {
		for _, r := range results {
			fmt.Printf("%-27sgodwit %s\n", r.name, strings.Join(r.args, " "))
		}
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

// Options say what is measured, and where it is written.
type options struct {
	match, out, plots string
	quick             bool
	args              []string // that are no flags: there are none
}

func (o *options) run(ctx context.Context) error {
	if len(o.args) > 0 {
		return fmt.Errorf("unexpected argument %q: say by -match what to measure", o.args[0])
	}
	if o.quick && o.out == filepath.Join("docs", "results") {
		return fmt.Errorf("figures of -quick do not belong into %s: give another folder by -out", o.out)
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return fmt.Errorf("-match: %w", err)
	}
	var wanted []result
	for _, r := range results {
		if match.MatchString(r.name) {
			wanted = append(wanted, r)
		}
	}
	if len(wanted) == 0 {
		return fmt.Errorf("no name matches %q: -list shows them", o.match)
	}
	for _, dir := range []string{o.out, o.plots} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "godwit-results-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	binary := filepath.Join(work, "godwit")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/godwit-ps/godwit/cmd/godwit")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build godwit: %w", err)
	}
	for _, r := range wanted {
		if o.quick {
			r = r.smaller()
		}
		m := measurement{result: r, binary: binary, commit: commit, dir: filepath.Join(work, r.name)}
		if err := m.run(ctx, o.out, o.plots); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// smaller is the result for a first look.
func (r result) smaller() result {
	if r.args[0] == "bench" {
		r.args = append([]string{"bench", "--time", "100ms", "--rows", "10000"}, r.args[1:]...)
		return r
	}
	args := append([]string{}, r.args...)
	r.args = append(args, "--quick")
	return r
}

// commit names the commit of the tree, and says so if sources differ from it.
func commit(ctx context.Context) (string, error) {
	head, err := git(ctx, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git(ctx, "status", "--porcelain", "--", "*.go", "*.s", "go.mod", "go.sum")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return head + ", with changes that are not committed", nil
	}
	return head, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w (figures are written with their commit: run this in a clone)", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
