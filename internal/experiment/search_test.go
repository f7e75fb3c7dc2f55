package experiment

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train/task"
)

func TestALadderHalvesAndKeepsToItsBudget(t *testing.T) {
	for _, c := range []struct {
		settings, budget, most int
		want                   []rung
	}{
		{1, 100, 6, nil},
		{2, 100, 6, []rung{{2, 6}}},
		{2, 5, 6, []rung{{2, 2}}},
		{2, 1, 6, []rung{{2, 1}}},
		{12, 48, 6, []rung{{12, 1}, {6, 2}, {3, 4}, {2, 6}}},
		{12, 47, 6, []rung{{11, 1}, {6, 2}, {3, 4}, {2, 6}}},
		{40, 24, 6, []rung{{6, 1}, {3, 2}, {2, 6}}},
		{5, 100, 1, []rung{{5, 1}, {3, 1}, {2, 1}}},
	} {
		if got := ladder(c.settings, c.budget, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d settings, %d epochs, %d at the most: %v, want %v", c.settings, c.budget, c.most, got, c.want)
		}
	}
	for n := range 60 {
		for budget := 2; budget < 100; budget += 7 {
			epochs := 0
			for _, r := range ladder(n, budget, 6) {
				epochs += r.settings * r.epochs
			}
			if epochs > budget {
				t.Errorf("%d settings with a budget of %d train for %d epochs", n, budget, epochs)
			}
		}
	}
}

// A search finds what takes least in the end, though something else is ahead at first,
// and trains ever fewer settings for longer.
func TestASearchFindsTheFastest(t *testing.T) {
	var rungs []rung
	// Setting 5 is the third best after an epoch, the best after more.
	early, late := []time.Duration{50, 40, 1, 30, 2, 3, 60, 70}, []time.Duration{50, 40, 9, 30, 8, 7, 60, 70}
	best, tried, err := halve(8, 1000, 8, func(settings []int, epochs int) (took []time.Duration, err error) {
		rungs = append(rungs, rung{len(settings), epochs})
		for _, s := range settings {
			if epochs == 1 {
				took = append(took, early[s])
			} else {
				took = append(took, late[s])
			}
		}
		return took, nil
	})
	if err != nil || best != 5 || tried != 8 || !slices.Equal(rungs, []rung{{8, 1}, {4, 2}, {2, 8}}) {
		t.Errorf("setting %d of %d after %v: %v", best, tried, rungs, err)
	}
	// Of equal ones, the first: the defaults, or what is nearest to them.
	best, tried, err = halve(5, 3, 8, func(settings []int, _ int) ([]time.Duration, error) { return make([]time.Duration, len(settings)), nil })
	if err != nil || best != 0 || tried != 2 {
		t.Errorf("of equal ones setting %d of %d: %v", best, tried, err)
	}
	if best, tried, err = halve(1, 3, 8, nil); err != nil || best != 0 || tried != 1 {
		t.Errorf("of one, setting %d of %d: %v", best, tried, err)
	}
	if _, _, err = halve(4, 100, 8, func([]int, int) ([]time.Duration, error) { return nil, errors.New("broken") }); err == nil {
		t.Error("an error is swallowed")
	}
}

func TestATargetIsWhatOneNodeReaches(t *testing.T) {
	up := newCourse(0.1, curve(0.2, 0.4, 0.5).Curve, false)
	down := newCourse(4, curve(3, 2, 1).Curve, true)
	if math.Abs(up.target-0.49) > 1e-12 || math.Abs(down.target-1/0.98) > 1e-12 {
		t.Errorf("targets %v and %v", up.target, down.target)
	}
	for _, c := range []struct {
		course        *course
		quality, want float64
	}{
		{up, 0.1, 0}, {up, 0.05, 0}, {up, math.NaN(), 0}, {up, 0.15, 0.5}, {up, 0.2, 1}, {up, 0.3, 1.5}, {up, 0.5, 3}, {up, 0.9, 3},
		{down, 5, 0}, {down, math.NaN(), 0}, {down, 3.5, 0.5}, {down, 1.5, 2.5}, {down, 0.5, 3},
	} {
		if got := c.course.epochs(c.quality); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v is what one node has after %v epochs, want %v", c.quality, got, c.want)
		}
	}
}

func TestASlowRunIsExpectedToGoOnAtItsPace(t *testing.T) {
	c := newCourse(0, curve(1, 2, 4).Curve, false) // the target is 3.92, one node's epoch 2.96
	s := time.Second
	run := func(quality, seconds float64) *Row {
		return &Row{Curve: []Point{{Seconds: seconds, Quality: quality}}}
	}
	reached, diverged := run(4, 10), run(1, 10)
	reached.ToTarget, diverged.Diverged = 9*s, true
	for _, x := range []struct {
		row  *Row
		want time.Duration
	}{
		{reached, 9 * s},
		{diverged, never},
		{run(1, 10), 29600 * time.Millisecond},
		{run(2, 10), 14800 * time.Millisecond},
		{run(0, 10), hidden + 10*s},
		{run(-1, 20), hidden + 20*s},
	} {
		if got := c.expect(x.row); (got - x.want).Abs() > time.Millisecond {
			t.Errorf("%+v is expected to take %v, want %v", x.row.Curve, got, x.want)
		}
	}
}

func TestAGridBeginsWithTheDefaultsAndWhatIsNearest(t *testing.T) {
	all := func(*setting) bool { return true }
	names := func(policy string, s task.Settings, calls Calls, possible func(*setting) bool) (names []string) {
		p, err := placement.ByName(policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range grid(p, s, calls, possible) {
			if name := x.policy.Name() + ": " + x.String(); slices.Contains(names, name) {
				t.Errorf("%s twice", name)
			} else {
				names = append(names, name)
			}
			changed, err := x.of(s)
			if err == nil {
				err = changed.Check()
			}
			if err != nil {
				t.Errorf("%s: %v", x.String(), err)
			}
		}
		return names
	}
	mf := task.DefaultMF()
	mf.Batch = 10
	want := []string{"static: defaults", "static: fetched ahead", "static: batch 40", "static: order blocks", "static: batch 160"}
	if got := names("static", mf, Batched, all); !slices.Equal(got[:5], want) || len(got) != 2*3*2 {
		t.Errorf("%q", got)
	}
	want = []string{"static: defaults", "static: order blocks"}
	if got := names("static", mf, Single, func(s *setting) bool { return !s.ahead }); !slices.Equal(got, want) {
		t.Errorf("with single calls %q", got)
	}
	got := names("nonuniform", task.DefaultKGE(), Batched, all)
	for _, want := range []string{"nonuniform(factor=10): defaults", "nonuniform: sampling local", "nonuniform(factor=30): batch 2048, sampling reuse"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, x := range names("relocate", task.DefaultLinear(), Batched, all) {
		if strings.Contains(x, "batch") && strings.Contains(x, "blocks") {
			t.Errorf("%s: blocks have no batches", x)
		}
	}
	if got := names("stale", task.DefaultSketch(), Batched, all); !slices.Contains(got, "stale: staleness 4") || len(got) != 4*3 {
		t.Errorf("%q", got)
	}
	if got := names("relocate", task.DefaultLinear(), Single, all); !slices.Contains(got, "relocate: solver blocks, delay 8") {
		t.Errorf("%q", got)
	}
}

func TestASettingChangesTheTaskAndNothingElse(t *testing.T) {
	s := setting{fields: []field{{"Solver", task.Blocks}, {"ByBlocks.Delay", 8}}, staleness: godwit.Within(3), ahead: true}
	if name := s.String(); name != "solver blocks, delay 8, staleness 3, fetched ahead" {
		t.Errorf("it is called %q", name)
	}
	was := task.DefaultLinear()
	was.LR = 0.123
	got, err := s.of(was)
	if err != nil {
		t.Fatal(err)
	}
	want := task.DefaultLinear()
	want.LR, want.Solver, want.ByBlocks.Delay = 0.123, task.Blocks, 8
	if *got.(*task.Linear) != *want || was.Solver == task.Blocks {
		t.Errorf("%+v, want %+v", got, want)
	}
	bad := setting{fields: []field{{"Batches", 3}}}
	if _, err := bad.of(was); err == nil || !strings.Contains(err.Error(), "Batches") {
		t.Errorf("a field that there is not: %v", err)
	}
}

// Made-up times of three seeds: of adaptive, and of two others.
func TestAdaptiveStandsBesideTheBestOfTheOthers(t *testing.T) {
	rows := func(seconds ...[]int) (rows [][]*Row, merged []*Row) {
		for i, of := range seconds {
			var seeds []*Row
			for _, s := range of {
				seeds = append(seeds, &Row{Policy: []string{"adaptive", "a", "b"}[i], Setting: "x", Epoch: 1, ToTarget: time.Duration(s) * time.Second})
			}
			rows, merged = append(rows, seeds), append(merged, mergedRow(slices.Clone(seeds)))
		}
		return rows, merged
	}
	for what, c := range map[string]struct {
		seconds [][]int
		want    *Over
	}{
		"ahead":                {[][]int{{10, 20, 30}, {20, 40, 60}, {30, 50, 70}}, &Over{"a", "x", 0.5, [2]float64{0.5, 0.5}, false}},
		"behind":               {[][]int{{11, 22, 36}, {20, 40, 60}, {10, 20, 30}}, &Over{"b", "x", 1.1, [2]float64{1.1, 1.2}, true}},
		"behind by less":       {[][]int{{104, 104, 120}, {100, 100, 100}, {200, 200, 200}}, &Over{"a", "x", 1.04, [2]float64{1.04, 1.2}, false}},
		"missed by one seed":   {[][]int{{10, 20, 0}, {20, 40, 60}, {0, 0, 1}}, &Over{"a", "x", 0.5, [2]float64{0.5, 0}, false}},
		"missed by most seeds": {[][]int{{0, 20, 0}, {20, 40, 60}, {0, 0, 1}}, &Over{"a", "x", 0, [2]float64{0.5, 0}, true}},
		"missed by all seeds":  {[][]int{{0, 0, 0}, {20, 40, 60}, {0, 0, 1}}, &Over{"a", "x", 0, [2]float64{0, 0}, true}},
		"missed by the others": {[][]int{{10, 20, 30}, {0, 0, 1}, {0, 0, 0}}, nil},
	} {
		all, merged := rows(c.seconds...)
		got := over(all[0], all[1:], merged[1:])
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}

func TestARatioSaysWhoMissedTheTarget(t *testing.T) {
	for want, o := range map[string]Over{
		"0.50":                                      {Ratio: 0.5, Range: [2]float64{0.5, 0.5}},
		"0.50 [0.25, 0.75]":                         {Ratio: 0.5, Range: [2]float64{0.25, 0.75}},
		"0.50 [0.25, not reached]":                  {Ratio: 0.5, Range: [2]float64{0.25, 0}},
		"0.50 [the other not reached, 0.75]":        {Ratio: 0.5, Range: [2]float64{0, 0.75}},
		"0.50 [the other not reached, not reached]": {Ratio: 0.5},
		"not reached":                               {},
	} {
		if got := o.String(); got != want {
			t.Errorf("%+v is %q, want %q", o, got, want)
		}
	}
}
