package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/internal/experiment"
)

// A measurement is a result under way.
type measurement struct {
	result
	binary, commit string
	dir            string // for what the command writes
}

// run measures, and replaces the files of the result.
func (m *measurement) run(ctx context.Context, out, plots string) error {
	fmt.Fprintf(os.Stderr, "results: godwit %s\n", strings.Join(m.args, " "))
	began, machine := time.Now(), bench.Here()
	args := append([]string{}, m.args...)
	if m.args[0] == "experiment" {
		args = append(args, "--out", m.dir)
	}
	printed, err := m.godwit(ctx, append(args, "--json"))
	if err != nil {
		return err
	}
	machine.LookAtLoad()
	about, figures, err := m.read(printed)
	if err != nil {
		return err
	}
	header := append([]string{
		"command: godwit " + strings.Join(m.args, " "),
		"commit: " + m.commit,
		"date: " + began.UTC().Format(time.DateOnly),
		"machine: " + machine.String(),
	}, about...)
	if err := replace(filepath.Join(out, m.name+".csv"), withHeader(header, figures)); err != nil {
		return err
	}
	return m.keepPlots(plots)
}

// godwit runs the command and returns what it prints. An interrupt is handed on,
// so that nodes that it started end, too.
func (m *measurement) godwit(ctx context.Context, args []string) ([]byte, error) {
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, m.binary, args...)
	cmd.Stdout, cmd.Stderr = &printed, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("godwit %s: %w", strings.Join(args, " "), err)
	}
	return printed.Bytes(), nil
}

// read returns the figures as CSV, and what else the header should say.
func (m *measurement) read(printed []byte) (about []string, figures []byte, err error) {
	if m.args[0] == "bench" {
		var r bench.Report
		if err := json.Unmarshal(printed, &r); err != nil {
			return nil, nil, err
		}
		var b bytes.Buffer
		err := r.CSV(&b)
		return []string{fmt.Sprintf("what: at most %d rows, %v s a case", r.Rows, r.Seconds)}, b.Bytes(), err
	}
	var r experiment.Report
	if err := json.Unmarshal(printed, &r); err != nil {
		return nil, nil, err
	}
	figures, err = os.ReadFile(filepath.Join(m.dir, r.Name+".csv"))
	return describe(&r), figures, err
}

// describe is what a report says beside its rows.
func describe(r *experiment.Report) []string {
	about := []string{"what: " + r.Task, fmt.Sprintf("seed: %d", r.Seed)}
	if r.Step > 0 {
		about = append(about, fmt.Sprintf("step: %v of computation", r.Step))
	} else {
		about = append(about, "step: real computation")
	}
	if r.Seeds > 1 {
		about = append(about, fmt.Sprintf("seeds: medians of %d, from the seed on", r.Seeds))
	}
	if r.Step > 0 {
		about = append(about, "costs: "+r.Charged())
	}
	if r.Objective != 0 {
		about = append(about, fmt.Sprintf("objective: %.6g an example", r.Objective))
	}
	if r.Metric != "" {
		about = append(about, "quality: "+r.Metric)
	}
	if r.Goal != "" {
		about = append(about, "target: "+r.Goal)
	}
	if r.Target != 0 {
		about = append(about, fmt.Sprintf("target: %.4g", r.Target))
	}
	return about
}

func (m *measurement) keepPlots(dir string) error {
	for _, p := range m.plots {
		made, kept, renamed := strings.Cut(p, "=")
		if !renamed {
			kept = made
		}
		b, err := os.ReadFile(filepath.Join(m.dir, made+".svg"))
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, kept+".svg"), b); err != nil {
			return err
		}
	}
	return nil
}

// withHeader puts comment lines before figures.
func withHeader(header []string, figures []byte) []byte {
	var b bytes.Buffer
	for _, line := range header {
		io.WriteString(&b, "# "+strings.ReplaceAll(line, "\n", " ")+"\n")
	}
	b.Write(figures)
	return b.Bytes()
}

// replace writes a file as a whole or not at all.
func replace(name string, content []byte) error {
	next := name + ".new"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, name)
}
