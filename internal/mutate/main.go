package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// What is broken, what may notice, and how the places are drawn. It was fixed
// before the tests were written that the first run asked for.
const (
	seed     = 10
	fraction = 0.05
)

var (
	targets = []string{"./internal/protocol/...", "./placement", "./node/...", "./coord", "./coord/etcd", "./coord/etcd/server", "./coord/mem", "./coord/internal/...", "./transport", "./transport/tcp", "./transport/mem", "./internal/wire", "./internal/pending"}

	tests = []string{"internal/protocol", "internal/protocol/directory", "internal/protocol/intent", "placement", "internal/wire", "coord", "coord/internal/ledger", "coord/mem",
		"transport", "transport/mem", "transport/tcp", "internal/pending", "coord/etcd", "coord/etcd/server", "node/internal/filtering", "node/internal/hot", "node/internal/latch", "node/internal/link", "node/internal/liveness",
		"node/internal/operation", "node/internal/planner", "node/internal/receive", "node/internal/round", "node/internal/run", "node/internal/scan", "node/internal/shards",
		"node/internal/staleness", "node/internal/tick", "node/internal/worker", "node", "sim"}

	storms = map[string][]string{"cmd/godwit": {"simulate --seeds 400", "simulate --seeds 150 --bounded"}}
)

func main() {
	var o options
	flag.BoolVar(&o.list, "list", false, "list the mutants that are drawn, and try none")
	flag.StringVar(&o.match, "match", "", "try only mutants whose name contains this")
	flag.StringVar(&o.work, "work", filepath.Join("run", "mutate"), "folder for binaries and results; what was killed before is not tried again")
	flag.DurationVar(&o.budget, "budget", 40*time.Second, "tests of a mutant take about this long at most")
	flag.DurationVar(&o.longest, "longest", 20*time.Second, "tests that take longer are left out")
	flag.IntVar(&o.jobs, "jobs", 2, "how many mutants are tried at a time")
	flag.BoolVar(&o.fresh, "fresh", false, "forget the results of runs before")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := o.main(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	list, fresh     bool
	match, work     string
	budget, longest time.Duration
	jobs            int
	args            []string // that are no flags: there are none
}

// draw lists the sites that the seed draws, numbered.
func draw(ps []*pkg, seed uint64, fraction float64) (drawn []*site, of int) {
	for _, p := range ps {
		for _, s := range p.sites() {
			of++
			if s.draw(seed, fraction) {
				s.id = len(drawn) + 1
				drawn = append(drawn, s)
			}
		}
	}
	return drawn, of
}

func (o *options) main(ctx context.Context) (ok bool, err error) {
	if len(o.args) > 0 {
		return false, fmt.Errorf("unexpected argument %q: say by -match which mutants to try", o.args[0])
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\t{{.Path}}").Output()
	if err != nil {
		return false, fmt.Errorf("no module here: %w", err)
	}
	root, module, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	ps, err := load(root, targets)
	if err != nil {
		return false, err
	}
	drawn, of := draw(ps, seed, fraction)
	fmt.Printf("%d of %d places are drawn by seed %d\n", len(drawn), of, seed)
	if o.list {
		for _, s := range drawn {
			fmt.Printf("%s\n    %s\n", s.Name(), s.diff(root))
		}
		return true, nil
	}
	if o.work, err = filepath.Abs(o.work); err != nil {
		return false, err
	}
	if err := os.MkdirAll(o.work, 0o700); err != nil {
		return false, err
	}
	overlay, err := writeOverlay(o.work, root, module, ps, drawn)
	if err != nil {
		return false, err
	}
	t := &trial{budget: o.budget}
	begin := time.Now()
	if t.bins, err = build(ctx, root, overlay, o.work, tests, storms); err != nil {
		return false, err
	}
	fmt.Printf("built in %v\n", time.Since(begin).Round(time.Second))
	if err := t.measure(ctx, o.longest); err != nil {
		return false, err
	}
	rs, err := o.tryAll(ctx, t, drawn)
	if err != nil {
		return false, err
	}
	argued, err := readArgued(filepath.Join(root, "docs", "mutants.md"))
	if err != nil {
		return false, err
	}
	return report(os.Stdout, root, drawn, rs, argued), nil
}

// measure runs every unit without a mutant.
func (t *trial) measure(ctx context.Context, longest time.Duration) error {
	begin := time.Now()
	units := 0
	for _, b := range t.bins {
		if err := b.measured(ctx, longest); err != nil {
			return err
		}
		for _, u := range b.units {
			units++
			if u.Fails {
				fmt.Printf("left out: %s %s fails, or takes longer than %v, without a mutant\n", b.pkg, u.Name, longest)
			}
		}
	}
	fmt.Printf("%d tests and storms measured in %v\n", units, time.Since(begin).Round(time.Second))
	return nil
}

// tryAll tries the mutants that are not known to be killed.
func (o *options) tryAll(ctx context.Context, t *trial, drawn []*site) (map[string]result, error) {
	known, err := openResults(filepath.Join(o.work, "results.jsonl"), o.fresh)
	if err != nil {
		return nil, err
	}
	defer known.close()
	todo := make(chan *site)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	done := 0
	for range max(1, o.jobs) {
		wg.Go(func() {
			for s := range todo {
				r, err := t.try(ctx, s)
				mu.Lock()
				if err == nil {
					err = known.add(r)
				}
				if err != nil && first == nil {
					first = err
				}
				done++
				if err == nil {
					what := "SURVIVED " + r.Name
					if r.Killed {
						what = "killed " + r.Name + " by " + r.By
					}
					fmt.Printf("%d: %s, %.1f s, %d of %d tests\n", done, what, r.Seconds, r.Tried, r.Reached)
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range drawn {
		if r, ok := known.all[s.Name()]; ok && r.Killed && r.From == s.From && r.To == s.To || !strings.Contains(s.Name(), o.match) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		todo <- s
	}
	close(todo)
	wg.Wait()
	return known.all, first
}
