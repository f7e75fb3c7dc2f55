package bench

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train/kge"
)

var rows = flag.Uint64("rows", DefaultOptions().Rows, "rows of the tables, if memory allows")

// Benchmark measures each case; an iteration is a turn of each of its programs.
func Benchmark(b *testing.B) {
	for _, c := range Cases() {
		b.Run(strings.ReplaceAll(c.Name, " ", "-"), func(b *testing.B) {
			o := DefaultOptions()
			o.Peer = []string{os.Args[0], asPeer}
			o.Rows = *rows
			d, err := c.setup(context.Background(), &o)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := d.Close(); err != nil {
					b.Error(err)
				}
			}()
			m, err := d.start()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := m.round(); err != nil {
					b.Fatal(err)
				}
			}
			r := result(&c, d, m.usable(leastRounds))
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.Nanos.Median, "ns/"+strings.ReplaceAll(r.Unit, " ", "-"))
			for _, x := range r.Ratios {
				b.ReportMetric(x.Median, "x-"+strings.ReplaceAll(x.To, " ", "-"))
			}
		})
	}
}

// A measurement that would go on for an hour ends with its context, with the rounds that there are.
func TestAMeasurementEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	turns := 0
	turn := func() error {
		if turns++; turns == 20 {
			cancel()
		}
		return nil
	}
	d := &Comparison{Units: 1, Unit: "turn", Path: turn, Baselines: []Baseline{{"the same", turn}}, Ends: func() *Ends { return &Ends{} }}
	o := DefaultOptions()
	o.Time = time.Hour
	r, err := new(Case).measure(ctx, d, &o)
	if err != nil || turns > 22 || r.Turns < leastRounds {
		t.Errorf("%d turns, %+v, %v", turns, r, err)
	}
	if _, err := new(Case).measure(ctx, d, &o); !errors.Is(err, context.Canceled) {
		t.Errorf("without a round: %v", err)
	}
}

// The loop over arrays is the baseline of a step of training only if it does
// the same: on random triples there is nothing to learn but which are the
// training ones, so both losses fall alike.
func TestThePlainLoopLearnsLikeTheServedOne(t *testing.T) {
	ctx := context.Background()
	g := randomGraph(1, 7*batch)
	p := newPlain(g, 1)
	task, err := kge.New(complExConfig(1), g)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := node.Local(ctx, 1, node.Config{Model: m, Workers: 1, Samplers: []sampling.Spec{{Name: "negatives", Dist: sampling.Uniform(entities), Scheme: sampling.Local{}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	s, err := newServed(ctx, task, c.Nodes[0].Worker(0))
	if err != nil {
		t.Fatal(err)
	}
	var served, plain, first float64
	for epoch := range 5 {
		served, plain = 0, 0
		for range len(g.Train) / batch {
			l, err := s.step()
			if err != nil {
				t.Fatal(err)
			}
			served += l
			plain += p.step()
		}
		if epoch == 0 {
			first = served
		}
		if r := served / plain; r < 0.85 || r > 1.18 {
			t.Errorf("epoch %d: loss %.1f by the server, %.1f by the loop", epoch, served, plain)
		}
	}
	if served > first/2 {
		t.Errorf("in 5 epochs the loss went from %.1f to %.1f: nothing was learnt that could be compared", first, served)
	}
}

func small() Options {
	o := DefaultOptions()
	o.Rows, o.Memory, o.Time = 2000, 64<<20, time.Millisecond
	o.Peer = []string{os.Args[0], asPeer}
	return o
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"999 rows":                   func(o *Options) { o.Rows = 999 },
		"1024 bytes of memory":       func(o *Options) { o.Memory = 1024 },
		"0s a case":                  func(o *Options) { o.Time = 0 },
		"no case's name contains":    func(o *Options) { o.Only = []string{"local", "lokal"} },
		`contains "lokal", there ar`: func(o *Options) { o.Only = []string{"lokal"} },
	} {
		o := small()
		change(&o)
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error that says %q, got %v", what, err)
		}
	}
}

func TestTheBaselinesDoWhatThePathDoes(t *testing.T) {
	const dim, n = 13, 50
	rows := make([]float32, n*dim)
	for i := range rows {
		rows[i] = float32(i)
	}
	keys := []godwit.Key{3, 0, 49, 3}
	plain, fast := make([]float32, len(keys)*dim), make([]float32, len(keys)*dim+1)
	copyRows(plain, rows, keys, dim)
	collect(fast, rows, keys, dim)
	for i := range plain {
		if want := rows[int(keys[i/dim])*dim+i%dim]; plain[i] != want || fast[i] != want {
			t.Fatalf("float %d: %v by the Go loop, %v by the assembly loop, want %v", i, plain[i], fast[i], want)
		}
	}
	if fast[len(plain)] != 0 {
		t.Error("the assembly loop writes too much")
	}
	addRows(plain, rows, keys, dim)
	if rows[3*dim] != 3*3*dim || rows[49*dim+12] != 2*(49*dim+12) {
		t.Errorf("added to %v and %v", rows[3*dim], rows[49*dim+12])
	}
}
