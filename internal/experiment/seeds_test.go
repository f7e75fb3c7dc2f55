package experiment

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/placement"
)

func TestFiguresAreMediansOfTheSeeds(t *testing.T) {
	report := func(seed uint64, epochs ...time.Duration) *Report {
		r := &Report{Name: "x", Seed: seed, Step: time.Millisecond, columns: trained}
		s := Series{Name: "a", of: func(r *Row) float64 { return r.Epoch.Seconds() }}
		for _, e := range epochs {
			r.Rows = append(r.Rows, &Row{Policy: "static", Epoch: e, Speedup: 12 / e.Seconds(), Moves: uint64(e / time.Second)})
			s.add(r.Rows[len(r.Rows)-1])
		}
		r.plots = []Plot{{File: "p", Series: []Series{s}}}
		return r
	}
	s := time.Second
	m := merged([]*Report{report(7, 4*s, 1*s), report(8, 2*s, 6*s), report(9, 3*s, 2*s), report(10, s)})
	if m.Seed != 7 || m.Seeds != 3 {
		t.Errorf("seed %d and %d seeds, want 7 and 3: the last run was not finished", m.Seed, m.Seeds)
	}
	a, b := m.Rows[0], m.Rows[1]
	if a.Epoch != 3*s || a.Speedup != 4 || a.Moves != 3 || a.Range.Epoch != [2]time.Duration{2 * s, 4 * s} || a.Range.Speedup != [2]float64{3, 6} {
		t.Errorf("%+v, %+v", a, a.Range)
	}
	if b.Epoch != 2*s || b.Range.Epoch != [2]time.Duration{s, 6 * s} {
		t.Errorf("%+v, %+v", b, b.Range)
	}
	if y := m.plots[0].Series[0].Y; y[0] != 3 || y[1] != 2 {
		t.Errorf("the plot has %v", y)
	}
	var out strings.Builder
	if err := m.Print(&out); err != nil || !strings.Contains(out.String(), "4.00 [3.00, 6.00]") || !strings.Contains(out.String(), "seeds 7 … 9") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	if one := merged([]*Report{report(7, s)}); one.Rows[0].Range != nil {
		t.Error("one seed has a range")
	}
}

// Of two seeds, pictures have the worse one where tables do.
func TestPicturesShowWhatTablesSay(t *testing.T) {
	const s = time.Second
	report := func(seed uint64, r Row) *Report {
		series := []Series{
			{Name: "time", of: func(r *Row) float64 { return untilReached(r.ToTarget) }},
			{Name: "speed-up", of: func(r *Row) float64 { return r.Speedup }},
			{Name: "bytes", of: func(r *Row) float64 { return float64(r.SentBytes) }},
		}
		for i := range series {
			series[i].add(&r)
		}
		return &Report{Name: "x", Seed: seed, Rows: []*Row{&r}, plots: []Plot{{File: "p", Series: series}}}
	}
	for _, c := range []struct {
		first, second Row
		want          [3]float64 // time, speed-up, bytes
	}{
		{Row{Epoch: 2 * s, Speedup: 3, ToTarget: 4 * s, SentBytes: 9}, Row{Epoch: 3 * s, Speedup: 2, ToTarget: 6 * s, SentBytes: 7}, [3]float64{6, 2, 7}},
		{Row{Epoch: 3 * s, Speedup: 2, ToTarget: 4 * s, SentBytes: 9}, Row{Epoch: 2 * s, Speedup: 3, SentBytes: 10}, [3]float64{math.Inf(1), 2, 9}},
	} {
		m := merged([]*Report{report(7, c.first), report(8, c.second)})
		row, drawn := m.Rows[0], m.plots[0].Series
		if said := [3]float64{untilReached(row.ToTarget), row.Speedup, float64(row.SentBytes)}; said != c.want {
			t.Errorf("the table has %v, want %v", said, c.want)
		}
		for i, want := range c.want {
			if y := drawn[i].Y; len(y) != 1 || y[0] != want {
				t.Errorf("the picture of %s has %v, want %v", drawn[i].Name, y, want)
			}
		}
	}
}

func TestAnExperimentRunsItsSeeds(t *testing.T) {
	l := tiny()
	l.Policies, l.Nodes, l.Seeds = []placement.Policy{placement.Static}, []int{1, 2}, 3
	r := run(t, "scaling", l)
	if r.Seeds != 3 {
		t.Errorf("%d seeds", r.Seeds)
	}
	for _, row := range r.Rows {
		if g := row.Range; g == nil || g.Epoch[0] > row.Epoch || row.Epoch > g.Epoch[1] || g.Epoch[0] == g.Epoch[1] {
			t.Errorf("%+v, %+v", row, g)
		}
	}
	if len(r.plots) == 0 {
		t.Error("nothing is drawn")
	}
	for i := range r.plots {
		if y := r.plots[i].Series[0].Y; len(y) != 2 {
			t.Errorf("%s has %v", r.plots[i].File, y)
		}
	}
}

// What an interrupt leaves of a seed has other rows, at other places.
func TestASeedThatWasInterruptedIsLeftOut(t *testing.T) {
	l := tiny()
	l.Policies, l.Nodes, l.Seeds = []placement.Policy{placement.Static}, []int{2}, 2
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	runs := 0
	l.Progress = func(string) {
		if runs++; runs == 8 { // of four each
			cancel()
		}
	}
	r, err := Run(ctx, "scaling", l)
	if !errors.Is(err, context.Canceled) || r.Seeds != 1 || len(r.Rows) != 4 || r.Rows[0].Nodes != 2 || r.Rows[0].Range != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// Batches of each size compute what was measured of them, under every seed.
func TestStepsOfBatchesAreMeasuredOnce(t *testing.T) {
	l := tiny()
	l.Step, l.Nodes, l.telling = 0, []int{1}, new(sync.Mutex)
	var rows [2][]*Row
	for seed := range rows {
		one, r := l, &Report{}
		one.Seed += uint64(seed)
		if err := inserts(context.Background(), &one, r); err != nil {
			t.Fatal(err)
		}
		l.Step, l.batchSteps, rows[seed] = one.Step, one.batchSteps, r.Rows
	}
	for i, row := range rows[0] {
		if row.Step <= 0 || row.Step != rows[1][i].Step {
			t.Errorf("a step of %d items computes %v under one seed, and %v under another", row.Batch, row.Step, rows[1][i].Step)
		}
	}
}

// Server work, announcing and bytes are not for nothing.
func TestCostsSlowARunDown(t *testing.T) {
	notUnderRace(t)
	// Of all epochs: so few batches are all loaded and announced in the first.
	took := func(mend func(*Lab)) float64 {
		l := tiny()
		l.Policies, l.Nodes = []placement.Policy{placement.Adaptive}, []int{2}
		mend(&l)
		curve := run(t, "scaling", l).Rows[0].Curve
		return curve[len(curve)-1].Seconds
	}
	plain := took(func(*Lab) {})
	for what, mend := range map[string]func(*Lab){
		"records":           func(l *Lab) { l.Costs.Record *= 20 },
		"frames":            func(l *Lab) { l.Costs.Send *= 5; l.Costs.Frame *= 5 },
		"intents":           func(l *Lab) { l.Costs.Announce += 2000 },
		"planning":          func(l *Lab) { l.Costs.Plan += 2000 },
		"acting on intents": func(l *Lab) { l.Costs.Want += 2000 },
		"samples":           func(l *Lab) { l.Costs.Sample += 50_000 },
		"batches":           func(l *Lab) { l.Costs.Load += 2000 },
		"bytes":             func(l *Lab) { l.Costs.Byte += 100 },
	} {
		if d := took(mend); d <= plain {
			t.Errorf("with %s that cost more a run takes %v s, before %v", what, d, plain)
		}
	}
	if d := took(func(l *Lab) { l.Cores = 4 * l.Workers }); d >= plain {
		t.Errorf("on four times the cores a run takes %v s, before %v", d, plain)
	}
}

// notUnderRace skips a test that simulates for long: the nodes of a simulation take turns in
// one goroutine at a time, in which the race detector has nothing to see and takes thirty
// times as long.
func notUnderRace(t *testing.T) {
	t.Helper()
	if racing.Enabled {
		t.Skip("simulates for long, one goroutine at a time")
	}
}

func TestRowsCanBeLonger(t *testing.T) {
	notUnderRace(t)
	for _, name := range []string{"kge", "mf", "w2v"} {
		bytes := map[int]float64{}
		for _, dim := range []int{8, 64} {
			l, err := NewLab(Choice{Task: name, Quick: true, Calls: Batched, Dim: dim})
			if err != nil {
				t.Fatal(err)
			}
			l.Policies, l.Nodes, l.Workers, l.Epochs, l.Evaluated = []placement.Policy{placement.Static}, []int{2}, 1, 1, 20
			l.Step = 100 * time.Microsecond
			bytes[dim] = run(t, "scaling", l).Rows[0].BytesPerAccess
		}
		if !(bytes[64] > 3*bytes[8]) {
			t.Errorf("%s: %.0f bytes an access with rows of 8 floats, %.0f with 64", name, bytes[8], bytes[64])
		}
	}
	if _, err := NewLab(Choice{Task: "kge", Calls: Batched, Dim: -1}); err == nil {
		t.Error("rows of -1 floats")
	}
}
