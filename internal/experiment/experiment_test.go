package experiment

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// tiny is a lab whose experiments take a second together.
func tiny() Lab {
	l, err := NewLab(Choice{Task: "kge", Quick: true, Calls: Batched})
	if err != nil {
		panic(err) // the choice is one of those that there are
	}
	k := l.Task.(*task.KGE)
	k.Graph.Entities, k.Graph.Relations, k.Graph.Triples = 300, 4, 2000
	k.Dim, k.Batch, k.Negatives = 8, 16, 8
	l.Epochs = 2
	l.Nodes, l.Most, l.Keys, l.Accesses, l.Exponents = []int{1, 2}, 2, 5000, 600, []float64{0, 1.1}
	l.Linear.Examples.Examples, l.Linear.Examples.Features, l.Linear.Examples.PerExample, l.Linear.Examples.Relevant = 500, 200, 10, 50
	l.Blocks, l.Passes, l.Delays, l.Spreads = 20, 3, []int{0, 4}, []float64{0.3}
	l.Sketch.Width, l.Sketch.Stream.Items, l.Sketch.Stream.Distinct, l.Batches = 512, 5000, 500, []int{50, 200}
	l.Step = 200 * time.Microsecond
	return l
}

func run(t *testing.T, name string, l Lab) *Report {
	t.Helper()
	r, err := Run(context.Background(), name, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func csvOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryExperimentRepeatsBitForBitAndCanBeShown(t *testing.T) {
	rows := map[string]int{"scaling": 2 * (1 + 6) * 2, "techniques": 1 + 2*10, "skew": 2 * 7, "timing": 2 * 6,
		"sampling": 1 + 2*len(sampling.Schemes()), "delay": 2, "sketch": 2 * 2, "filters": 8 + 10 + 7 + 5, "best": 2*(1+7) + 1} // best: of mf also adaptive with the best program
	labs := map[string]func() Lab{"best": small}
	for _, name := range Names() {
		tiny := tiny
		if labs[name] != nil {
			tiny = labs[name]
		}
		t.Run(name, func(t *testing.T) {
			if name != "delay" { // which has several runs at a time, as all have
				notUnderRace(t)
			}
			r := run(t, name, tiny())
			table := csvOf(t, r)
			again := tiny()
			again.Parallel = 2
			if again := csvOf(t, run(t, name, again)); table != again {
				t.Errorf("the same lab gives\n%s\nand then\n%s", table, again)
			}
			other := tiny()
			other.Seed = 2
			if csvOf(t, run(t, name, other)) == table {
				t.Error("another seed gives the same figures: it is not used")
			}
			cells, err := csv.NewReader(strings.NewReader(table)).ReadAll()
			if err != nil || len(cells) != rows[name]+1 {
				t.Errorf("%d lines of CSV, want %d; %v", len(cells), rows[name]+1, err)
			}
			for _, row := range r.Rows {
				if row.Epoch <= 0 || row.Accesses == 0 {
					t.Errorf("a run in which nothing happened: %+v", row)
				}
			}
			shown(t, r)
		})
	}
}

// shown checks what Print and Save write.
func shown(t *testing.T, r *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "step "+r.Step.String()) || strings.Count(b.String(), "\n") < len(r.Rows)+3 {
		t.Errorf("printed\n%s", b.String())
	}
	files, err := r.Save(t.TempDir())
	if err != nil || len(files) < 2 {
		t.Fatalf("saved %v: %v", files, err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, ".svg") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Inf")) {
			t.Errorf("%s has points that are no numbers", f)
		}
		d := xml.NewDecoder(bytes.NewReader(text))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
		}
	}
}

func TestOneNodeSendsNothingAndAdaptiveBeatsStaticOnTwo(t *testing.T) {
	notUnderRace(t)
	l := tiny()
	r := run(t, "scaling", l)
	speed := map[string]float64{}
	for _, row := range r.Rows {
		if row.Nodes == 1 || row.Policy == shared {
			if row.BytesPerAccess != 0 || row.NoMessage != 1 || row.Nodes == 1 && row.Speedup != 1 {
				t.Errorf("one node: %+v", row)
			}
		}
		if row.Nodes == 1 {
			continue
		}
		if waits := row.NoMessage < 0.9; row.Waiting < 0 || row.Waiting >= 1 || waits && row.Waiting == 0 {
			t.Errorf("%s: %.3f of the accesses need a message, and workers wait for %v of their time", row.Policy, 1-row.NoMessage, row.Waiting)
		}
		if row.Network == "10g" {
			speed[row.Policy] = row.Speedup
		}
	}
	if speed["adaptive"] <= speed["static"] {
		t.Errorf("speed-ups of two nodes: %v", speed)
	}
	for policy, s := range speed {
		if policy != shared && s >= speed[shared] {
			t.Errorf("%s is %.3f times as fast on two nodes, and one node with the workers of both %.3f times", policy, s, speed[shared])
		}
	}
}

func TestALongerDelayWaitsLessAndTakesMorePasses(t *testing.T) {
	r := run(t, "delay", tiny())
	none, long := r.Rows[0], r.Rows[1]
	if none.Passes != tiny().Passes || none.Effective != 1 || none.ToTarget == 0 {
		t.Errorf("no delay: %+v, want %d passes and a speed-up of 1", none, tiny().Passes)
	}
	if long.Waiting > 0.7*none.Waiting || long.Passes < none.Passes || long.ToTarget == 0 {
		t.Errorf("a delay of %d waits for %.3f of the time and takes %d passes, none for %.3f and %d", long.Delay, long.Waiting, long.Passes, none.Waiting, none.Passes)
	}
}

// With a delay the model is worse after each pass, until its loss is no number.
func TestARunThatDivergesReachesNothing(t *testing.T) {
	l := tiny()
	l.OnReal(func(_ context.Context, spec job.Spec, _ <-chan struct{}, tell func(job.Event)) (*job.Result, error) {
		delay := spec.Task.(*task.Linear).ByBlocks.Delay
		for pass := range spec.Options.Epochs {
			loss := 1 / float64(pass+1)
			if delay > 0 {
				loss = float64(pass + 1)
			}
			tell(job.Event{Epoch: &job.Epoch{Epoch: pass + 1, Seconds: 1, Loss: loss}})
			if delay > 0 && pass == 2 {
				return nil, train.ErrDiverged
			}
		}
		return &job.Result{}, nil
	})
	r := run(t, "delay", l)
	none, long := r.Rows[0], r.Rows[1]
	if none.ToTarget == 0 || long.ToTarget != 0 || long.Effective != 0 || !long.Diverged || long.Loss != 3 {
		t.Errorf("without delay %v; with one %+v", none.ToTarget, long)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "diverged") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	var picture bytes.Buffer
	if err := r.plots[0].SVG(&picture); err != nil || strings.Count(picture.String(), "<circle") != 1 || strings.Contains(picture.String(), "Inf") {
		t.Errorf("times to the objective, of which there is one: %v\n%s", err, &picture)
	}
}

// A run that is asked to end trains a part of one more epoch.
func TestAnEpochThatIsCutShortDoesNotCount(t *testing.T) {
	l := tiny()
	l.OnReal(func(_ context.Context, spec job.Spec, stop <-chan struct{}, tell func(job.Event)) (*job.Result, error) {
		for pass := range spec.Options.Epochs {
			select {
			case <-stop:
				tell(job.Event{Epoch: &job.Epoch{Epoch: pass + 1, Seconds: 0.001, Loss: 0.001}})
				return &job.Result{}, nil
			default:
				tell(job.Event{Epoch: &job.Epoch{Epoch: pass + 1, Seconds: 1, Loss: 1 / float64(pass+1)}})
			}
		}
		return &job.Result{}, nil
	})
	row := run(t, "delay", l).Rows[1]
	if row.Epoch != time.Second || len(row.Curve) != l.Passes+1 {
		t.Errorf("%d passes of %v, want %d of a second", len(row.Curve), row.Epoch, l.Passes+1)
	}
}

func TestMoreNodesInsertMoreAndLoseNothing(t *testing.T) {
	r := run(t, "sketch", tiny())
	for _, row := range r.Rows {
		if row.TooSmall != 0 || row.Inserts <= 0 || row.Nodes > 1 && (row.Speedup <= 1 || row.SentBytes == 0) {
			t.Errorf("%+v", row)
		}
	}
	l := tiny()
	l.Nodes = []int{2}
	for _, row := range run(t, "sketch", l).Rows {
		if row.Speedup != 0 {
			t.Errorf("%v times as fast as one node, which was not run", row.Speedup)
		}
	}
}

func TestFiltersSendLessAndThoseThatLoseNothingChangeNothing(t *testing.T) {
	notUnderRace(t)
	l := tiny()
	l.Linear.Examples.Examples = 1000
	less := false
	r := run(t, "filters", l)
	if r.Costs.Frame != 0 || r.Costs.Record != 0 || r.Costs.Key == 0 {
		t.Errorf("the report says that %+v was charged: messages take the same time, whatever they are", r.Costs)
	}
	for _, row := range r.Rows {
		lossless := true
		for _, lossy := range []string{"bf16", "fixed", "significant", "KKT"} {
			lossless = lossless && !strings.Contains(row.Filters, lossy)
		}
		if lossless && !row.Same {
			t.Errorf("%s with %s ends with another model", row.Program, row.Filters)
		}
		less = less || row.Less > 1.5
		if row.Less < 0.99 && row.Filters != "none" {
			t.Errorf("%s with %s sends more bytes, %d", row.Program, row.Filters, row.SentBytes)
		}
	}
	if !less {
		t.Error("no filter saves a third of the bytes: the test is vacuous")
	}
}

func TestRealNodesRunTheSamePrograms(t *testing.T) {
	for _, name := range []string{"delay", "sketch"} {
		l := tiny()
		l.OnReal(local)
		l.Nodes, l.Most = []int{1, 2}, 2
		r := run(t, name, l)
		for _, row := range r.Rows {
			if row.Epoch <= 0 || row.Accesses == 0 || name == "delay" && row.ToTarget == 0 || name == "sketch" && row.Inserts == 0 {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}

func TestIntentsSignalledEarlyWaitLess(t *testing.T) {
	notUnderRace(t)
	r := run(t, "timing", tiny())
	near, far := r.Rows[0], r.Rows[4]
	if near.Offset != 1 || far.Offset != 256 || near.NoMessage >= far.NoMessage {
		t.Errorf("%d steps ahead: %.3f without a message; %d: %.3f", near.Offset, near.NoMessage, far.Offset, far.NoMessage)
	}
}

func TestWhatCannotBeRunIsRefusedByName(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		mend func(*Lab)
	}{
		`no experiment "speed"`: {"speed", func(*Lab) {}},
		"at least 1 of each":    {"scaling", func(l *Lab) { l.Workers = 0 }},
		"numbers of nodes":      {"scaling", func(l *Lab) { l.Nodes = nil }},
		"exponents":             {"skew", func(l *Lab) { l.Exponents = nil }},
		"a step of":             {"scaling", func(l *Lab) { l.Step = -1 }},
		"cannot use those in":   {"skew", func(l *Lab) { l.Data = "folder" }},
		"nowhere":               {"scaling", func(l *Lab) { l.Data = "nowhere" }},
		"simulated only":        {"scaling", func(l *Lab) { l.OnReal(local) }},
		"delays []":             {"delay", func(l *Lab) { l.Delays = nil }},
		"mf draws no samples":   {"sampling", func(l *Lab) { l.Task = task.DefaultMF() }},
		"name one of them":      {"best", func(l *Lab) { l.Policies = []placement.Policy{placement.Adaptive} }},
		"data are of one task":  {"best", func(l *Lab) { l.sizes, l.Data = small().sizes, "." }},
		"batches of [0]":        {"sketch", func(l *Lab) { l.Batches = []int{0} }},
	} {
		l := tiny()
		c.mend(&l)
		if _, err := Run(context.Background(), c.name, l); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, "scaling", tiny()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAStepIsMeasured(t *testing.T) {
	l := tiny()
	w, err := l.work(l.Exponent)
	if err != nil {
		t.Fatal(err)
	}
	step, err := l.calibrate(context.Background(), w)
	if err != nil || step <= 0 || step > time.Minute {
		t.Errorf("a step takes %v: %v", step, err)
	}
}

func TestWhatWasMeasuredBeforeAnInterruptIsKept(t *testing.T) {
	l := tiny()
	l.Policies, l.Parallel = []placement.Policy{placement.Static}, 2
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	runs := 0
	l.Progress = func(string) {
		if runs++; runs == 3 {
			cancel()
		}
	}
	r, err := Run(ctx, "skew", l)
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Rows) != 2 || r.Rows[1].Policy != "static" {
		t.Fatalf("%+v, %v", r, err)
	}
}

// The smallest comparison of every task, with each kind of calls.
func TestEveryTaskCanBeCompared(t *testing.T) {
	notUnderRace(t)
	for _, name := range Tasks() {
		for _, calls := range AllCalls() {
			t.Run(name+" "+string(calls), func(t *testing.T) {
				l, err := NewLab(Choice{Task: name, Quick: true, Calls: calls})
				if err != nil {
					t.Fatal(err)
				}
				l.Nodes, l.Workers, l.Epochs, l.Evaluated = []int{1}, 1, 1, 20
				l.Step = 100 * time.Microsecond
				r := run(t, "scaling", l)
				if row := r.Rows[0]; r.Metric == "" || row.Epoch == 0 || len(row.Curve) != 1 || row.Loss == 0 && name != "sketch" {
					t.Errorf("%s: %+v", r.Metric, row)
				}
				w, err := l.work(l.Exponent)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Check("sampling"); (err == nil) != (len(w.samplers) > 0) {
					t.Errorf("%d samplers: %v", len(w.samplers), err)
				}
			})
		}
	}
	if _, err := NewLab(Choice{Task: "chess", Calls: Batched}); err == nil || !strings.Contains(err.Error(), "mf") {
		t.Errorf("a task that there is not: %v", err)
	}
}
