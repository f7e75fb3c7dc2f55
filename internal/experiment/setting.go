package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train/lda"
	"github.com/godwit-ps/godwit/train/mf"
	"github.com/godwit-ps/godwit/train/sketch"
	"github.com/godwit-ps/godwit/train/task"
)

// A setting is what a program and a policy are given beside their defaults.
type setting struct {
	policy    placement.Policy
	fields    []field      // of the task's settings
	staleness godwit.Bound // of the reads of all tables
	ahead     bool         // see [ahead]
}

// defaults names a setting that changes nothing.
const defaults = "defaults"

// A field is one of the task's settings, by its name in their JSON; one within another
// is behind a dot.
type field struct {
	name  string
	value any
}

// String names what differs from the defaults, without the policy.
func (s *setting) String() string {
	var parts []string
	for _, f := range s.fields {
		parts = append(parts, fmt.Sprint(strings.ToLower(f.name[strings.LastIndex(f.name, ".")+1:]), " ", f.value))
	}
	if s.staleness != godwit.Eventual {
		parts = append(parts, "staleness "+s.staleness.String())
	}
	if s.ahead {
		parts = append(parts, "fetched ahead")
	}
	if len(parts) == 0 {
		return defaults
	}
	return strings.Join(parts, ", ")
}

// has reports whether a field is set to a value.
func (s *setting) has(name string, value any) bool {
	return slices.Contains(s.fields, field{name, value})
}

// set reports whether a field is set.
func (s *setting) set(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

// of returns the task's settings with the setting's fields.
func (s *setting) of(t task.Settings) (task.Settings, error) {
	b, err := json.Marshal(t)
	for _, f := range s.fields {
		if err == nil {
			b, err = patched(b, strings.Split(f.name, "."), f.value)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: %s, %s: %w", t.Name(), s, err)
	}
	return task.Decode(t.Name(), b)
}

// patched is an object with another value at a path of names that it has.
func patched(object []byte, path []string, value any) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	old, ok := fields[path[0]]
	if !ok {
		return nil, fmt.Errorf("no field %s", path[0])
	}
	var err error
	if len(path) > 1 {
		fields[path[0]], err = patched(old, path[1:], value)
	} else {
		fields[path[0]], err = json.Marshal(value)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Alternatives are what one dimension of a search can be: the first leaves a setting
// as it is, each other one changes it.
type alternatives []func(*setting)

func unchanged(*setting) {}

// with sets fields, before those that it has.
func (s *setting) with(fields ...field) { s.fields = append(fields, s.fields...) }

// alternativesOf are fields that may have other values.
func alternativesOf(name string, values ...any) alternatives {
	a := alternatives{unchanged}
	for _, v := range values {
		a = append(a, func(s *setting) { s.with(field{name, v}) })
	}
	return a
}

// batches are larger batches than those of the task, or than the least that it chooses.
func batches(batch int) alternatives { return alternativesOf("Batch", 4*batch, 16*batch) }

// programs are the ways to train a task: larger batches, blocks of parameters,
// schemes of sampling. The programs of the papers have no batches.
func programs(t task.Settings, calls Calls) []alternatives {
	var batch int
	var others []alternatives
	switch s := t.(type) {
	case *task.KGE:
		batch, others = s.Batch, []alternatives{alternativesOf("Sampling", "reuse", "local")}
	case *task.W2V:
		batch, others = s.Batch, []alternatives{alternativesOf("Sampling", "reuse", "local")}
	case *task.MF:
		batch, others = cmp.Or(s.Batch, mf.LeastBatch), []alternatives{alternativesOf("Order", "blocks")}
	case *task.Linear:
		batch, others = s.Batch, []alternatives{{unchanged, inBlocks(2), inBlocks(8)}}
	case *task.LDA:
		batch = cmp.Or(s.Batch, lda.LeastBatch)
	case *task.Sketch:
		batch = cmp.Or(s.Batch, sketch.LeastBatch)
	}
	if calls == Batched && batch > 0 {
		others = append([]alternatives{batches(batch)}, others...)
	}
	return others
}

// inBlocks trains a linear model by blocks of features, of which so many more may be under way.
func inBlocks(delay int) func(*setting) {
	return func(s *setting) {
		s.with(field{"Solver", task.Blocks}, field{"ByBlocks.Delay", delay})
	}
}

// own are what a policy can be given itself.
func own(p placement.Policy) []alternatives {
	switch base(p) {
	case placement.Static.Name():
		return []alternatives{{unchanged, func(s *setting) { s.ahead = true }}}
	case placement.Stale.Name():
		a := alternatives{unchanged}
		for _, clocks := range []int{1, 4, 16} {
			a = append(a, func(s *setting) { s.staleness = godwit.Within(clocks) })
		}
		return []alternatives{a}
	case placement.NonUniform.Name():
		a := alternatives{unchanged}
		for _, factor := range []int{30, 10, 300} {
			a = append(a, func(s *setting) {
				s.policy, _ = placement.ByName(fmt.Sprintf("%s(factor=%d)", base(p), factor)) // one that there is
			})
		}
		return []alternatives{a}
	}
	return nil
}

// base is a policy's name without parameters.
func base(p placement.Policy) string { return baseName(p.Name()) }

func baseName(policy string) string {
	name, _, _ := strings.Cut(policy, "(")
	return name
}

// grid are the settings of a policy for a task, those first that differ least from the
// defaults, which are the very first.
func grid(p placement.Policy, t task.Settings, calls Calls, possible func(*setting) bool) []setting {
	dims := append(own(p), programs(t, calls)...)
	type point struct {
		setting
		changes, steps int
	}
	points := []point{{setting: setting{policy: p}}}
	for _, alts := range slices.Backward(dims) { // the first dimension changes first
		var next []point
		for _, at := range points {
			for i, change := range alts {
				x := at
				if change(&x.setting); i > 0 {
					x.changes, x.steps = x.changes+1, x.steps+i
				}
				next = append(next, x)
			}
		}
		points = next
	}
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.changes, b.changes), cmp.Compare(a.steps, b.steps))
	})
	var all []setting
	for _, x := range points {
		if x.sensible() && possible(&x.setting) {
			all = append(all, x.setting)
		}
	}
	return all
}

// sensible reports whether everything that is set matters: a solver by blocks has no
// batches, and keeps its own writes under way.
func (s *setting) sensible() bool {
	return !s.has("Solver", task.Blocks) || !s.set("Batch") && !s.ahead
}
