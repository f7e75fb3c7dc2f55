package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A unit is one test, or one run of a command.
type unit struct {
	Name    string // of the test; the arguments of a command
	Seconds float64
	Fails   bool // without a mutant, or takes too long
	Reached []int

	of *binary
}

// A binary holds units.
type binary struct {
	pkg     string // below the module
	path    string
	dir     string // where it runs
	command bool   // its units are runs of it, and no tests
	units   []*unit
}

// build compiles the tests of packages, and commands, with an overlay.
func build(ctx context.Context, root, overlay, to string, tests []string, commands map[string][]string) ([]*binary, error) {
	var bins []*binary
	gotool := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stderr, cmd.Stdout = root, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	for _, p := range tests {
		b := &binary{pkg: p, dir: filepath.Join(root, p), path: filepath.Join(to, strings.ReplaceAll(p, "/", "-")+".test")}
		if err := gotool("test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, "./"+p); err != nil {
			return nil, err
		}
		if _, err := os.Stat(b.path); err != nil {
			continue // it has no tests
		}
		out, err := exec.CommandContext(ctx, b.path, "-test.list", "^(Test|Fuzz|Example)").Output()
		if err != nil {
			return nil, fmt.Errorf("tests of %s: %w", p, err)
		}
		for _, name := range strings.Fields(string(out)) {
			b.units = append(b.units, &unit{Name: name, of: b})
		}
		bins = append(bins, b)
	}
	for p, runs := range commands {
		b := &binary{pkg: p, dir: root, path: filepath.Join(to, filepath.Base(p)), command: true}
		if err := gotool("build", "-buildvcs=false", "-overlay", overlay, "-o", b.path, "./"+p); err != nil {
			return nil, err
		}
		for _, r := range runs {
			b.units = append(b.units, &unit{Name: r, of: b})
		}
		bins = append(bins, b)
	}
	return bins, nil
}

// run runs units of one binary, with a mutant unless that is 0. What they reach is
// noted in a file, if that has a name.
func (b *binary) run(ctx context.Context, us []*unit, mutant int, note string, limit time.Duration) (text string, err error) {
	var args []string
	if b.command {
		args = strings.Fields(us[0].Name)
	} else {
		names := make([]string, len(us))
		for i, u := range us {
			names[i] = u.Name
		}
		args = []string{"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", (limit + time.Minute).String()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errEndless)
	defer cancel()
	cmd := command(ctx, b.path, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GODWIT_MUTANT="+strconv.Itoa(mutant), "GODWIT_REACHED="+note)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if c := context.Cause(ctx); c != nil {
		err = c
	}
	return string(out), err
}

var errEndless = errors.New("does not end")

// measure runs each unit of a binary alone, without a mutant.
func (b *binary) measure(ctx context.Context, longest time.Duration) error {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, u := range b.units {
		note := filepath.Join(dir, strconv.Itoa(i))
		begin := time.Now()
		_, err := b.run(ctx, []*unit{u}, 0, note, longest)
		u.Seconds = time.Since(begin).Seconds()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u.Fails = err != nil
		text, err := os.ReadFile(note)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, l := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(l); err == nil {
				u.Reached = append(u.Reached, id)
			}
		}
		slices.Sort(u.Reached)
		u.Reached = slices.Compact(u.Reached) // of several processes
	}
	return nil
}

// measured is measure, unless it was done with the same binary before. What is
// known is kept in a file beside the binary.
func (b *binary) measured(ctx context.Context, longest time.Duration) error {
	sum, err := sumOf(b.path)
	if err != nil {
		return err
	}
	type known struct {
		Sum   string
		Units []*unit
	}
	name := b.path + ".json"
	if text, err := os.ReadFile(name); err == nil {
		var k known
		if json.Unmarshal(text, &k) == nil && k.Sum == sum && slices.EqualFunc(k.Units, b.units, func(x, y *unit) bool { return x.Name == y.Name }) {
			for _, u := range k.Units {
				u.of = b
			}
			b.units = k.Units
			return nil
		}
	}
	if err := b.measure(ctx, longest); err != nil {
		return err
	}
	text, err := json.Marshal(known{sum, b.units})
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
