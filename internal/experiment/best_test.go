package experiment

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train/task"
)

// small is a lab of "best" with tiny data of two tasks.
func small() Lab {
	l := tiny()
	sketch := task.DefaultSketch()
	sketch.Width, sketch.Stream.Items, sketch.Stream.Distinct, sketch.Batch = 512, 5000, 500, 50
	mf := task.DefaultMF()
	mf.Matrix.Rows, mf.Matrix.Cols, mf.Matrix.Cells = 100, 40, 1000
	mf.Dim, mf.Batch, mf.Rule, mf.LR, mf.BoldDriver = 4, 8, "adagrad", 0.1, false
	l.sizes = []size{{mf, 2, 50}, {sketch, 1, 1}}
	l.Nodes, l.Workers, l.Budget, l.Seeds = []int{1, 2}, 1, 8, 2
	return l
}

func TestAdaptiveIsComparedWithEveryOtherPolicyAtItsBest(t *testing.T) {
	notUnderRace(t)
	r := run(t, "best", small())
	var got []string
	for at, row := range r.Rows {
		if second := at > 0 && row.Nodes > 1 && row.Policy == "adaptive" && r.Rows[at-1].Policy == "adaptive" && r.Rows[at-1].Nodes > 1; second {
			if row.Setting == "defaults" || row.Over == nil || row.Over.Policy != r.Rows[at-1].Over.Policy {
				t.Errorf("adaptive's best program is %s, beside %+v", row.Setting, row.Over)
			}
			continue
		}
		got = append(got, fmt.Sprint(row.Task, " ", row.Nodes, " ", baseName(row.Policy)))
		if row.Target == 0 || row.Epoch <= 0 || row.Step <= 0 || row.ComputedPerItem <= 0 || row.Range == nil {
			t.Errorf("%+v", row)
		}
		if row.Metric != map[string]string{"mf": "RMSE", "sketch": "mean excess"}[row.Task] || !row.LowerIsBetter {
			t.Errorf("the quality of %s is %q", row.Task, row.Metric)
		}
		if row.Task == "mf" && row.Nodes == 1 && row.ComputedPerItem*900 > row.Epoch*101/100 {
			t.Errorf("900 cells of %v each in an epoch of %v on one core", row.ComputedPerItem, row.Epoch)
		}
		if (row.Nodes > 1) != (row.BytesPerItem > 0) {
			t.Errorf("%s on %d nodes: %v bytes an item", row.Policy, row.Nodes, row.BytesPerItem)
		}
		if row.Policy == "adaptive" && row.Setting != "defaults" {
			t.Errorf("adaptive was given %s", row.Setting)
		}
	}
	var want []string
	for _, name := range []string{"mf", "sketch"} {
		want = append(want, name+" 1 adaptive")
		for _, p := range []string{"adaptive", "static", "replicate", "stale", "relocate", "nonuniform", "adapm"} {
			want = append(want, name+" 2 "+p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	// Only adaptive has a verdict, on the one that reached the target first.
	for at, row := range r.Rows {
		if row.Over == nil {
			continue
		}
		if row.Policy != "adaptive" || row.Nodes != 2 {
			t.Errorf("a verdict on %s on %d nodes", row.Policy, row.Nodes)
		}
		for _, other := range r.Rows[at+1 : at+6] {
			if other.Policy == "adaptive" {
				continue
			}
			if first := other.Policy == row.Over.Policy; first && other.Setting != row.Over.Setting {
				t.Errorf("%s has %s, not %s", other.Policy, other.Setting, row.Over.Setting)
			}
		}
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"adaptive's time to the target", "4 to 203 times", "mf, 2 nodes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The classic server gains from fewer and larger calls where steps are short, so a search
// leaves the defaults.
func TestASearchLeavesTheDefaultsWhereThatIsFaster(t *testing.T) {
	l := small()
	l.sizes, l.Policies, l.Seeds, l.Budget, l.Step = l.sizes[:1], []placement.Policy{placement.Static}, 1, 40, 5*time.Microsecond
	r := run(t, "best", l)
	row := r.Rows[len(r.Rows)-1]
	if row.Policy != "static" || !strings.Contains(row.Setting, "batch") || row.Tried != 12 {
		t.Errorf("%s: %s of %d", row.Policy, row.Setting, row.Tried)
	}
	if o := r.Rows[1].Over; o == nil || o.Policy != "static" || o.Setting != row.Setting || o.Ratio != r.Rows[1].ToTarget.Seconds()/row.ToTarget.Seconds() {
		t.Errorf("adaptive is at %+v, after %v and %v", o, r.Rows[1].ToTarget, row.ToTarget)
	}
}

// Replicas take updates at once, which other nodes see only after further rounds.
func TestATimeToTheTargetLastsUntilUpdatesAreVisible(t *testing.T) {
	l := small()
	l.sizes, l.Policies, l.Seeds = l.sizes[1:], []placement.Policy{placement.ReplicateAll}, 1
	l.Step = time.Microsecond
	r := run(t, "best", l)
	if row := r.Rows[len(r.Rows)-1]; row.Policy != "replicate" || row.ToTarget <= row.Epoch {
		t.Errorf("%s ends its epoch after %v, and has all updates after %v", row.Policy, row.Epoch, row.ToTarget)
	}
}

func TestProgramsOfAnEpochComputeAlikeWhateverTheBatch(t *testing.T) {
	l := small()
	l.Step = time.Millisecond
	c := &contest{lab: l, size: l.sizes[1], took: map[string]time.Duration{}}
	h := &heat{lab: l, works: map[string]*work{}}
	h.lab.Task = c.size.settings
	c.seeds = []*heat{h}
	for _, x := range []struct {
		batch, nodes int
		want         time.Duration
	}{
		{50, 1, time.Millisecond},
		{100, 1, 2 * time.Millisecond},
		{5000, 1, 100 * time.Millisecond},
		{5000, 4, 100 * time.Millisecond}, // the only batch is one worker's
	} {
		s := setting{fields: []field{{"Batch", x.batch}}}
		if err := c.prepare(context.Background(), h, s, x.nodes); err != nil {
			t.Fatal(err)
		}
		if got := c.took[c.stepOf(s, x.nodes)]; got != x.want {
			t.Errorf("a step of %d on %d nodes computes for %v, want %v", x.batch, x.nodes, got, x.want)
		}
	}
}

func TestBestSaysWhatItCannotCompare(t *testing.T) {
	for want, mend := range map[string]func(*Lab){
		"compares several nodes":  func(l *Lab) { l.Nodes = []int{1} },
		"a budget of 0":           func(l *Lab) { l.Budget = 0 },
		"on simulated nodes only": func(l *Lab) { l.OnReal(local); l.Calls = Single },
	} {
		l := small()
		mend(&l)
		if _, err := Run(context.Background(), "best", l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if err := new(Lab).On([]int{4, 0}); err == nil || !strings.Contains(err.Error(), "[4 0]") {
		t.Errorf("0 nodes: %v", err)
	}
	if _, err := NewLab(Choice{Task: "lda", Search: true, Calls: Batched, Dim: 8}); err == nil || !strings.Contains(err.Error(), "lda") {
		t.Errorf("longer rows of lda: %v", err)
	}
}

func TestBestRunsOnRealNodes(t *testing.T) {
	l := small()
	l.OnReal(local)
	l.sizes, l.Policies, l.Nodes = l.sizes[:1], []placement.Policy{placement.Static}, []int{2}
	r := run(t, "best", l)
	for _, row := range r.Rows {
		if row.metric != "RMSE" || !row.lowerIsBetter || row.Quality == 0 || row.Epoch <= 0 || row.Network != "real" || strings.Contains(row.Setting, "ahead") {
			t.Errorf("%+v", row)
		}
	}
}

func TestATimeToTheTargetThatWasMissedIsTheLongest(t *testing.T) {
	rows := func(seconds ...time.Duration) (rows []*Row) {
		for _, s := range seconds {
			rows = append(rows, &Row{ToTarget: s * time.Second})
		}
		return rows
	}
	if m := mergedRow(rows(0, 7, 5)); m.ToTarget != 7*time.Second || m.Range.ToTarget != [2]time.Duration{5 * time.Second, 0} {
		t.Errorf("%v, %v", m.ToTarget, m.Range.ToTarget)
	}
	if m := mergedRow(rows(0, 7, 0)); m.ToTarget != 0 {
		t.Errorf("two of three missed it, and it is reached after %v", m.ToTarget)
	}
	if m := mergedRow(rows(7, 0)); m.ToTarget != 0 {
		t.Errorf("one of two missed it, and it is reached after %v", m.ToTarget)
	}
}

// The rows of one node are by seed, and each run is compared with that of its own.
func TestMediansLeaveRowsInTheOrderOfTheSeeds(t *testing.T) {
	rows := []*Row{{Epoch: 3, Speedup: 2, Effective: 0}, {Epoch: 1, Speedup: 6, Effective: 4}}
	first := rows[0]
	m := mergedRow(rows)
	if rows[0] != first {
		t.Error("the rows were sorted")
	}
	if m := mergedRow([]*Row{{Epoch: 1, Target: 0.9}, {Epoch: 2, Target: 0.4}, {Epoch: 3, Target: 0.5}}); m.Target != 0.5 {
		t.Errorf("of the targets 0.4, 0.5 and 0.9 %v", m.Target)
	}
	if m.Epoch != 3 || m.Speedup != 2 || m.Effective != 0 {
		t.Errorf("of two seeds %v, %v and %v, want what the worse one has", m.Epoch, m.Speedup, m.Effective)
	}
}

// On data of its own, "best" trains with the settings of "godwit train", other experiments with theirs.
func TestBestTrainsGivenDataAsTrainDoes(t *testing.T) {
	for _, name := range Tasks() {
		given, err := NewLab(Choice{Task: name, Search: true, Calls: Batched, Given: true})
		if err != nil {
			t.Fatal(err)
		}
		generated, err := NewLab(Choice{Task: name, Search: true, Calls: Batched})
		if err != nil {
			t.Fatal(err)
		}
		want, err := task.New(name)
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := want.(*task.MF); ok { // plain SGD is not for many workers
			m.Rule, m.LR, m.BoldDriver = "adagrad", 0.1, false
		}
		if got := given.sizes[0].settings; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: given data are trained with %+v, want %+v", name, got, want)
		}
		if given.Epochs != generated.Epochs {
			t.Errorf("%s: %d epochs with given data, %d with others", name, given.Epochs, generated.Epochs)
		}
		other, err := NewLab(Choice{Task: name, Calls: Batched, Given: true})
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(other.Task, want) {
			t.Errorf("%s: another experiment is as large as training", name)
		}
	}
}

// local is a [Runner] whose nodes are those of this process.
func local(ctx context.Context, spec job.Spec, stop <-chan struct{}, tell func(job.Event)) (*job.Result, error) {
	return job.Local(ctx, spec.Task.Name(), spec, job.NodeConfig{Stop: stop, Progress: tell})
}

// Of what was ended before several nodes were run, there is nothing to say of adaptive or of what papers claim; of some policies, some of it.
func TestOnlyClaimsOfWhichThereAreFiguresArePrinted(t *testing.T) {
	row := func(policy string, nodes int) *Row {
		return &Row{Task: "mf", Policy: policy, Setting: defaults, Nodes: nodes, Epoch: time.Second}
	}
	for _, c := range []struct {
		rows    []*Row
		want    []string
		without []string
	}{
		{[]*Row{row("adaptive", 1)}, nil, []string{"claim", "over that of the best"}},
		{[]*Row{row("adaptive", 1), row("adaptive", 2), row("static", 2)}, []string{"much faster", "1.00", "over that of the best"}, []string{"Lapse"}},
	} {
		var b strings.Builder
		r := &Report{Name: "best", Goal: "goal", columns: compared, Rows: c.rows}
		if err := r.Print(&b); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.want {
			if !strings.Contains(b.String(), s) {
				t.Errorf("no %q in\n%s", s, &b)
			}
		}
		for _, s := range c.without {
			if strings.Contains(b.String(), s) {
				t.Errorf("%q in\n%s", s, &b)
			}
		}
	}
}
