package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Case is one path under one load.
type Case struct {
	Name string // such as "pull/10/1"
	// Aim is the ratio to the first baseline that the path should not exceed; 0
	// is none.
	Aim   float64
	setup func(ctx context.Context, o *Options) (*Comparison, error)
}

// Options say how large and how long the measurements are.
type Options struct {
	Rows   uint64        // of the table, if they fit in Memory
	Memory uint64        // bytes that a case may take
	Time   time.Duration // of the turns of a case
	Seed   uint64        // of keys
	// Only are parts of names: cases that contain one of them are measured; none
	// is all.
	Only []string
	// Peer is the command of the other process of remote cases: a program that calls
	// ServePeer with its standard input and output.
	Peer []string
	// Progress, if set, hears what is about to be measured.
	Progress func(c *Case)

	pairs *pairs // if set, keeps the last pair of processes for the next case
}

// DefaultOptions are a million rows, in at most 4 GiB, and a second a case.
func DefaultOptions() Options {
	return Options{Rows: 1_000_000, Memory: 4 << 30, Time: time.Second, Seed: 1}
}

// Check reports options that cannot be meant.
func (o *Options) Check() error {
	switch {
	case o.Rows < 1000 || o.Rows > 1<<32:
		return fmt.Errorf("bench: %d rows, want 1000 … %d", o.Rows, uint64(1)<<32)
	case o.Memory < 16<<20:
		return fmt.Errorf("bench: %d bytes of memory, want 16 MiB at least", o.Memory)
	case o.Time <= 0:
		return fmt.Errorf("bench: %v a case, want more than 0", o.Time)
	}
	for _, part := range o.Only {
		if !anyCase(part) {
			return fmt.Errorf("bench: no case's name contains %q, there are %s", part, strings.Join(Summary(), ", "))
		}
	}
	return nil
}

func anyCase(part string) bool {
	for _, c := range Cases() {
		if strings.Contains(c.Name, part) {
			return true
		}
	}
	return false
}

func (o *Options) wants(name string) bool {
	for _, part := range o.Only {
		if strings.Contains(name, part) {
			return true
		}
	}
	return len(o.Only) == 0
}

// Names are the names of all cases.
func Names() []string {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
	}
	return names
}

// Summary lists the names of all cases, those of many sizes in one line.
func Summary() []string {
	var lines []string
	for _, name := range Names() {
		if strings.HasPrefix(name, "remote/pu") {
			name = "remote/pull or push/1, 10, 100, 1000 or 10000 keys of 1, 4, 16, 100 or 512 floats/blocking or pipelined"
		}
		if !slices.Contains(lines, name) {
			lines = append(lines, name)
		}
	}
	return lines
}

// Cases are all that can be measured.
func Cases() []Case {
	var cs []Case
	for _, list := range [][]Case{localCases(), skewCases(), remoteCases(), trainingCases(), fillCases()} {
		cs = append(cs, list...)
	}
	return cs
}

// A Result is what was measured of a case.
type Result struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Nanos  Spread  `json:"nanos"`         // of a unit on the path
	Aim    float64 `json:"aim,omitempty"` // for the first ratio
	Ratios []Ratio `json:"ratios"`
	Turns  int     `json:"turns"` // that count
	// Allocs is how many objects the whole process allocates in a turn; nil where
	// that is not counted.
	Allocs *float64 `json:"allocs"`
	Ends   *Ends    `json:"ends,omitempty"` // of cases between two processes
}

// A Ratio is time over a baseline's time.
type Ratio struct {
	To    string  `json:"to"`
	Nanos float64 `json:"nanos"` // median of the baseline's unit
	Spread
}

// Measure runs a case.
func (c *Case) Measure(ctx context.Context, o *Options) (r *Result, err error) {
	defer func() {
		if err != nil {
			r, err = nil, fmt.Errorf("bench: %s: %w", c.Name, err)
		}
	}()
	d, err := c.setup(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err = c.measure(ctx, d, o)
	return r, errors.Join(err, d.Close())
}

// leastRounds of a measurement: fewer have no quartiles to speak of.
const leastRounds = 5

// On a machine that is busy, a case takes up to so many times as long, until
// there are enough turns that count.
const (
	longest = 5
	enough  = 50
)

// measure runs rounds until there are enough, or ctx ends: then those that there are have to do, if any
// quartiles can be told from them.
func (c *Case) measure(ctx context.Context, d *Comparison, o *Options) (*Result, error) {
	m, err := d.start()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for n := 0; n < leastRounds || time.Since(began) < o.Time || time.Since(began) < longest*o.Time && m.lacks(enough); n++ {
		if ctx.Err() != nil {
			if n < leastRounds {
				return nil, context.Cause(ctx)
			}
			break
		}
		if err := m.round(); err != nil {
			return nil, err
		}
	}
	r := result(c, d, m.usable(leastRounds))
	if d.Ends != nil {
		r.Ends = d.Ends()
		return r, nil
	}
	allocs, err := allocations(d.Path)
	r.Allocs = &allocs
	return r, err
}

func result(c *Case, d *Comparison, ts times) *Result {
	r := &Result{Name: c.Name, Unit: d.Unit, Aim: c.Aim, Turns: len(ts.counted(0))}
	for i, b := range d.Baselines {
		r.Ratios = append(r.Ratios, Ratio{To: b.Name, Nanos: spread(ts.counted(1+i)).Median / float64(d.Units), Spread: spread(ts.ratios(i))})
	}
	s := spread(ts.counted(0))
	n := float64(d.Units)
	r.Nanos = Spread{s.Q1 / n, s.Median / n, s.Q3 / n}
	return r
}

// allocations returns how many objects a turn allocates: the least of some, as
// others in the process allocate too.
func allocations(turn func() error) (float64, error) {
	least := -1.0
	for i := 0; i < 50 && least != 0; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := turn(); err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs - before.Mallocs); least < 0 || n < least {
			least = n
		}
	}
	return least, nil
}
