package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/internal/bench"
)

// A report is what was measured of all tasks. The baseline is one.
type report struct {
	Machine bench.Machine `json:"machine"`
	Date    string        `json:"date"`
	Policy  string        `json:"policy"`
	Tasks   []*figure     `json:"tasks"`
}

// A figure is what was measured of a task.
type figure struct {
	Name string `json:"name"`
	Args string `json:"args"`
	// One and Four are the processor time of an example on one node and on four, in
	// microseconds, without the first epoch.
	One   spread `json:"one_us"`
	Four  spread `json:"four_us"`
	Ratio spread `json:"ratio"` // of four over one, round by round
	First spread `json:"first"` // … in the first epoch
	// Apart is the processor time of an example of runs on one node, as many at once as
	// there are nodes otherwise: what the machine alone makes of as many processes. ToApart
	// is that of four nodes over it, round by round. Older baselines have neither.
	Apart   spread `json:"apart_us,omitzero"`
	ToApart spread `json:"ratio_to_apart,omitzero"`
	// Baseline is what it is compared with; nil: nothing.
	Baseline *figure `json:"baseline,omitempty"`

	one, four, apart, ratios, firsts, toApart []float64 // of each round
}

// A spread is of what the rounds measured.
type spread struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
}

func spreadOf(xs []float64) spread {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	return spread{s[0], (s[(n-1)/2] + s[n/2]) / 2, s[n-1]}
}

func (s spread) String() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", s.Median, s.Least, s.Most) }

// add takes what a round measured.
func (f *figure) add(one, four, apart cost) {
	f.one, f.four, f.apart = append(f.one, one.later), append(f.four, four.later), append(f.apart, apart.later)
	f.ratios, f.firsts = append(f.ratios, four.later/one.later), append(f.firsts, four.first/one.first)
	f.toApart = append(f.toApart, four.later/apart.later)
}

func (f *figure) sum() {
	f.One, f.Four, f.Ratio, f.First = spreadOf(f.one), spreadOf(f.four), spreadOf(f.ratios), spreadOf(f.firsts)
	f.Apart, f.ToApart = spreadOf(f.apart), spreadOf(f.toApart)
}

// exceeds reports whether the figure is worse than its baseline: over it by more
// than the tolerance, and over all of its rounds.
func (f *figure) exceeds(tolerance float64) bool {
	b := f.Baseline.Ratio
	return f.Ratio.Median > max(b.Median*(1+tolerance), b.Most)
}

// worse is an error that names the tasks that are.
func (r *report) worse(tolerance float64) error {
	var names []string
	for _, f := range r.Tasks {
		if f.Baseline != nil && f.exceeds(tolerance) {
			names = append(names, fmt.Sprintf("%s: four nodes take %.2f times the processor time of one, the baseline is %.2f", f.Name, f.Ratio.Median, f.Baseline.Ratio.Median))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%w by more than %.0f %%: %s", errWorse, 100*tolerance, strings.Join(names, "; "))
}

// readBaseline reads a file; one that does not exist is an empty baseline.
func readBaseline(file string) (*report, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &report{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// figure returns the baseline of a task; nil if there is none, or of other data.
func (r *report) figure(t task) *figure {
	for _, f := range r.Tasks {
		if f.Name == t.name && f.Args == t.args {
			return f
		}
	}
	return nil
}

// merge returns a baseline with the tasks of a new report in the place of older ones.
func (r *report) merge(newer *report) *report {
	m := *newer
	m.Tasks = nil
	for _, t := range tasks {
		for _, from := range []*report{newer, r} {
			if f := from.figure(t); f != nil {
				own := *f
				own.Baseline = nil
				m.Tasks = append(m.Tasks, &own)
				break
			}
		}
	}
	return &m
}

func (r *report) save(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
