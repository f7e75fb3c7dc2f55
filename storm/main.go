package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// mostStorms is how many storms of a run are tried until everything has happened
// that is to be checked: far more than it takes.
const mostStorms = 400

// interrupted is the exit code of a run that was interrupted, as of "godwit".
const interrupted = 130

func main() {
	seed := flag.Uint64("seed", 0, "run the storm of this `seed` only")
	first := flag.Uint64("first", uint64(time.Now().UnixNano())%1e9, "first `seed` of many storms (default: by the time)")
	duration := flag.Duration("duration", 30*time.Second, "how `long` to run storms, one after the other")
	beOne := flag.Bool("node", false, "be a node of a storm (internal)")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Storm runs random workers on small clusters and judges everything that they see.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "storm: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	switch {
	case *beOne:
		err = beNode(*seed)
	case *seed != 0:
		err = storm(ctx, *seed, &counts{}, os.Stdout)
	default:
		err = storms(ctx, max(*first, 1), *duration)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "storm: interrupted")
		os.Exit(interrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// storms runs storms for a while, and beyond it until everything was checked that
// is to be checked. An interrupt ends them; that is the error then.
func storms(ctx context.Context, first uint64, d time.Duration) error {
	began, c := time.Now(), &counts{}
	n := uint64(0)
	for ; ctx.Err() == nil && (time.Since(began) < d || len(c.missing()) > 0 && n < mostStorms); n++ {
		if err := storm(ctx, first+n, c, nil); err != nil {
			if ctx.Err() != nil {
				break // it was cut short
			}
			return err
		}
	}
	if n == 0 {
		return ctx.Err()
	}
	fmt.Printf("storms of the seeds %d … %d without a fault, in %v:\n%v", first, first+n-1, time.Since(began).Round(time.Millisecond), c)
	if missing := c.missing(); ctx.Err() == nil && len(missing) > 0 {
		return fmt.Errorf("%d storms from -first %d on never had: %s", n, first, strings.Join(missing, ", "))
	}
	return ctx.Err()
}

// storm runs one storm. One seed in eight is of a storm in processes.
func storm(ctx context.Context, seed uint64, c *counts, say *os.File) error {
	p, err := newPlan(seed, seed%8 == 0)
	if err != nil {
		return err
	}
	if say != nil {
		fmt.Fprintln(say, p)
	}
	if p.processes {
		err = inProcesses(ctx, p, c)
	} else {
		err = inProcess(ctx, p, c)
	}
	if err != nil {
		return fmt.Errorf("-seed %d (%v): %w", seed, p, err)
	}
	return nil
}
