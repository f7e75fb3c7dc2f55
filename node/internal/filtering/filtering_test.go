package filtering

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/optim"
)

// big holds back what has no 10 in it.
var big = filter.Significant{Threshold: 10}

func modelOf(t testing.TB, tables ...godwit.Table) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// filtered is a model with one table of values of two floats, that filters.
func filtered(t testing.TB, fs ...godwit.Filter) *godwit.Model {
	t.Helper()
	return modelOf(t, godwit.Table{Name: "t", Rows: 1000, Dim: 2, Filters: fs})
}

// rows returns what is kept, by key.
func rows(r *Residual) map[godwit.Key][]float32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows
}

// Vectors that are kept again and again take memory once.
func TestAResidualUsesItsVectorsAgain(t *testing.T) {
	var r Residual
	v := []float32{1, 2}
	turn := func() {
		r.add(7, v)
		if x, _ := r.take(7); !slices.Equal(x, v) {
			t.Fatalf("kept %v, want %v", x, v)
		} else {
			r.give(x)
		}
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n >= 1 {
		t.Errorf("%v allocations each time", n)
	}
	if r.size != 0 || r.Some() || len(r.free[2]) != 1 {
		t.Errorf("%d floats of %d keys are kept still, %d vectors are free, want 1", r.size, r.keys.Load(), len(r.free[2]))
	}
}

// What was taken to be pushed and could not be comes back.
func TestAResidualTakesBackWhatWasNotPushed(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "long", Rows: 3, Dim: 2}, godwit.Table{Name: "short", Rows: 3, Dim: 1})
	var r Residual
	for k, v := range map[godwit.Key][]float32{1: {1, 10}, 2: {2, 20}, 4: {4}} {
		r.add(k, v)
	}
	keys, vals, odd := r.Take([]godwit.Key{0, 1, 2, 3, 4}, nil)
	if !slices.Equal(keys, []godwit.Key{1, 2, 4}) || !slices.Equal(vals, []float32{1, 10, 2, 20, 4}) || r.Some() {
		t.Fatalf("took %v: %v", keys, vals)
	}
	r.add(4, []float32{0.5})
	r.Return(m, keys, vals, odd, 2)
	if want := map[godwit.Key][]float32{2: {2, 20}, 4: {4.5}}; fmt.Sprint(rows(&r)) != fmt.Sprint(want) {
		t.Errorf("kept: %v, want %v", rows(&r), want)
	}
	if got := r.Keys(); !slices.Equal(got, []godwit.Key{2, 4}) {
		t.Errorf("kept of keys %v", got)
	}
}

// A push of several tables goes through the filters of each: what they hold back is
// kept, and is added to the next push.
func TestAPushGoesThroughTheFiltersOfItsTables(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "held", Rows: 10, Dim: 2, Filters: []godwit.Filter{big}}, godwit.Table{Name: "plain", Rows: 10, Dim: 1})
	fs := New(m, 1, true)
	p := fs.Pipeline(godwit.WorkerID{})
	keys := []godwit.Key{1, 2, 10, 3}
	push := []float32{4, 0 /**/, 11, 0 /**/, 5 /**/, 9, 9}
	miss := []int{0, 0, 1, 2, 2, 4, 3, 5}
	sent, codes, vals := p.Filter(t.Context(), idle, miss, keys, push)
	got := map[godwit.Key][]float32{}
	for i := 0; i < len(sent); i += 2 {
		k := keys[sent[i]]
		got[k] = vals[sent[i+1]:][:m.Dim(k)]
	}
	if want := map[godwit.Key][]float32{2: {11, 0}, 10: {5}}; fmt.Sprint(got) != fmt.Sprint(want) || len(codes) != 2 {
		t.Errorf("sends %v in %d codes, want %v", got, len(codes), want)
	}
	if p.Residual().Some() || fs.Kept() {
		t.Error("something is kept before it is known what was sent")
	}
	p.Keep(sent, 0)
	if want := map[godwit.Key][]float32{1: {4, 0}, 3: {9, 9}}; fmt.Sprint(rows(p.Residual())) != fmt.Sprint(want) || !fs.Kept() {
		t.Errorf("kept: %v, want %v", rows(p.Residual()), want)
	}
	if c := p.Counts(); c.Dropped != 2 || c.In != 4*6 || c.Out != 4*2 {
		t.Errorf("counts %+v", c)
	}

	again := p.AddKept([]godwit.Key{0, 1}, []float32{1, 1, 7, 0})
	if !slices.Equal(again, []float32{1, 1, 11, 0}) || !p.Took() {
		t.Errorf("pushes %v with what was kept", again)
	}
	sent, _, vals = p.Filter(t.Context(), idle, []int{1, 2}, []godwit.Key{0, 1}, again) // key 0 was served here
	if !slices.Equal(sent, []int{1, 0}) || !slices.Equal(vals, []float32{11, 0}) {
		t.Errorf("sends %v of %v", sent, vals)
	}
	p.Keep(sent, 0)
	if got := p.Residual().Keys(); p.Took() || !slices.Equal(got, []godwit.Key{3}) {
		t.Errorf("kept of keys %v, want of key 3", got)
	}
}

// A call that is cancelled half way keeps what it had to add to the rest.
func TestWhatACancelledPushDidNotSendIsKeptAsItWas(t *testing.T) {
	p := New(filtered(t, filter.FixedPoint(1)), 1, true).Pipeline(godwit.WorkerID{})
	keys := []godwit.Key{1, 2, 3, 4}
	for _, k := range keys[:3] {
		p.residual.add(k, []float32{float32(k), 0})
	}
	p.AddKept(keys, make([]float32, 8))
	p.left = []kept{{0, 1, []float32{100, 0}}, {2, 3, []float32{300, 0}}, {3, 4, []float32{400, 0}}}
	p.Keep([]int{0, 0, 2, 2, 3, 4}, 2) // key 2 was served here, keys 3 and 4 were not sent
	want := map[godwit.Key][]float32{1: {100, 0}, 3: {3, 0}}
	if fmt.Sprint(rows(&p.residual)) != fmt.Sprint(want) {
		t.Errorf("kept: %v, want %v", rows(&p.residual), want)
	}
}

// soon checks that a function takes no more processor time than a limit. Time in which a busy machine runs others does not count.
func soon(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	if took := time.Duration(host.Real().Measure(f)); took > limit {
		t.Errorf("it took %v", took)
	}
}

// A large push that is cancelled before most of it was sent returns soon.
func TestWhatALargePushDidNotSendIsFoundSoon(t *testing.T) {
	const n = 200_000
	p := New(filtered(t, filter.FixedPoint(1)), 1, true).Pipeline(godwit.WorkerID{})
	var miss []int
	for i := n - 1; i >= 0; i-- { // in the order of their shards, which may be any
		miss = append(miss, i, 2*i)
		p.left = append(p.left, kept{i, godwit.Key(i), []float32{1, 0}})
	}
	soon(t, 10*time.Second, func() { p.Keep(miss, n-3) })
	want := map[godwit.Key][]float32{n - 1: {1, 0}, n - 2: {1, 0}, n - 3: {1, 0}}
	if fmt.Sprint(rows(&p.residual)) != fmt.Sprint(want) {
		t.Errorf("kept: %v, want %v", rows(&p.residual), want)
	}
}

// A push of keys of very many tables is filtered soon, table by table.
func TestAPushToManyTablesIsFilteredSoon(t *testing.T) {
	const n, each = 20_000, 30
	tables := make([]godwit.Table, n)
	for i := range tables {
		tables[i] = godwit.Table{Name: fmt.Sprint(i), Rows: each, Dim: 1, Filters: []godwit.Filter{filter.Sparse{}}}
	}
	p := New(modelOf(t, tables...), 1, true).Pipeline(godwit.WorkerID{})
	var keys []godwit.Key
	var miss []int
	push := make([]float32, n*each)
	for i := range push { // each key is of another table than the one before
		keys, miss = append(keys, godwit.Key(i%n*each+i/n)), append(miss, i, i)
		push[i] = float32(i)
	}
	var sent []int
	var vals []float32
	soon(t, 5*time.Second, func() { sent, _, vals = p.Filter(t.Context(), idle, miss, keys, push) })
	if len(sent) != 2*len(keys) || len(vals) != len(push) {
		t.Fatalf("sends %d of %d keys", len(sent)/2, len(keys))
	}
	for i := 0; i < len(sent); i += 2 {
		if sent[i] != i/2 || vals[sent[i+1]] != push[sent[i]] {
			t.Fatalf("sends %v of position %d as that of %d", vals[sent[i+1]], sent[i], i/2)
		}
	}
}

// What is set aside for a cut is taken in the order of keys, soon however much it is, and with what comes back meanwhile.
func TestWhatIsSetAsideIsTakenInParts(t *testing.T) {
	const n, part = 100_000, 16
	var r Residual
	for i := range n {
		r.add(godwit.Key(i*7919%n), []float32{1})
	}
	r.Cross()
	var all []godwit.Key
	back := false
	soon(t, 5*time.Second, func() {
		for keys, vals, _ := r.TakeAside(part); len(keys) > 0; keys, vals, _ = r.TakeAside(part) {
			if len(keys) > part || len(vals) != len(keys) {
				t.Fatalf("%d keys and %d floats, want up to %d", len(keys), len(vals), part)
			}
			if all = append(all, keys...); !back {
				back = true
				r.giveBack(all[0], []float32{1}, false)
				r.giveBack(all[len(all)-1]+1, []float32{1}, false)
			}
		}
	})
	if len(all) != n+1 || all[n] != 0 || !slices.IsSorted(all[:n]) || r.Aside() {
		t.Errorf("%d keys were taken, the last of them %d, want %d in order and 0; some are left: %v", len(all), all[len(all)-1], n, r.Aside())
	}
}

// While a worker keeps as much as it may, its pushes go through no filter.
func TestWhatAWorkerKeepsHasABound(t *testing.T) {
	p := New(filtered(t, big), 1, true).Pipeline(godwit.WorkerID{})
	keys, push := []godwit.Key{1}, []float32{1, 0}
	p.residual.add(2, make([]float32, room+1))
	sent, codes, vals := p.Filter(t.Context(), idle, []int{0, 0}, keys, push)
	if !slices.Equal(sent, []int{0, 0}) || len(codes) != 0 || &vals[0] != &push[0] {
		t.Errorf("sends %v of %v in %d codes, want all as it is", sent, vals, len(codes))
	}
	p.residual.take(2)
	if sent, _, _ = p.Filter(t.Context(), idle, []int{0, 0}, keys, push); len(sent) != 0 {
		t.Errorf("when there is room again, %v is sent", sent)
	}
}

// A set forgets what all workers kept of its keys, as far as it was done.
func TestASetForgetsWhatItDid(t *testing.T) {
	fs := New(filtered(t, big), 1, true)
	a, b := fs.Pipeline(godwit.WorkerID{}), fs.Pipeline(godwit.WorkerID{Local: 1})
	a.residual.add(1, []float32{1, 0})
	a.residual.add(3, []float32{3, 0})
	b.residual.add(2, []float32{2, 0})
	took, _ := fs.Overwrite([]godwit.Key{1, 2, 4}, false)
	if len(took) != 2 || b.residual.Some() {
		t.Errorf("took %d vectors", len(took))
	}
	b.residual.add(2, []float32{0, 7}) // meanwhile
	Forget(took, 1)                    // only the first key was set
	for r, want := range map[*Residual]map[godwit.Key][]float32{&a.residual: {3: {3, 0}}, &b.residual: {2: {2, 7}}} {
		if fmt.Sprint(rows(r)) != fmt.Sprint(want) {
			t.Errorf("kept: %v, want %v", rows(r), want)
		}
	}
}

// What a set took of a worker's leftovers, and did not overwrite after all, is of the side of the cut that it was of.
func TestWhatASetGivesBackStaysBeforeTheCut(t *testing.T) {
	fs := New(filtered(t, big), 1, true)
	r := &fs.Pipeline(godwit.WorkerID{}).residual
	r.add(1, []float32{1, 2})
	took, _ := fs.Overwrite([]godwit.Key{1}, false)
	r.Cross()
	Forget(took, 0)
	if r.Some() || !fs.Aside() {
		t.Errorf("kept: %v, want nothing, but what is set aside", rows(r))
	}
	if keys, vals, odd := r.TakeAside(9); fmt.Sprint(keys, vals, odd) != "[1] [1 2] false" {
		t.Errorf("set aside: %v %v, odd: %v", keys, vals, odd)
	}
	if fs.Aside() {
		t.Error("something is set aside that was taken")
	}
	r.add(2, []float32{3, 4}) // after the worker has crossed
	if took, ok := fs.Overwrite([]godwit.Key{2}, false); ok || took != nil || !r.Some() {
		t.Errorf("took %v of the other side; ok: %v, kept: %v", took, ok, rows(r))
	}
}

// A call may not lose what its tables cannot do without, nor bring what is of no use.
func TestFiltersOfACallAreChecked(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "plain", Rows: 100, Dim: 1}, godwit.Table{Name: "counts", Rows: 100, Dim: 1, Counts: true},
		godwit.Table{Name: "most", Rows: 100, Dim: 1, Rule: optim.Max{}})
	p := New(m, 1, true).Pipeline(godwit.WorkerID{})
	for _, x := range []struct {
		f    godwit.Filter
		keys []godwit.Key
		says string // empty: it may be used
	}{
		{filter.Skip{P: 0.9}, []godwit.Key{5, 7, 99}, ""},
		{filter.Skip{P: 0.9}, []godwit.Key{5, 7, 100}, `"counts"`},
		{filter.Skip{P: 0.9}, []godwit.Key{5, 200}, `"most"`},
		{filter.BF16{}, []godwit.Key{100, 0}, ""},
		{filter.BF16{}, []godwit.Key{100, 0, 200}, `"most"`},
		{filter.Sparse{}, []godwit.Key{0, 100, 200}, ""},
		{nil, []godwit.Key{0}, "nil"},
		{filter.Fixed{Bytes: 7}, []godwit.Key{0}, "7"},
		{filter.Compress{Method: filter.S2}, []godwit.Key{0}, "compresses frames"},
	} {
		fs := []godwit.Filter{x.f}
		for range 2 { // the second time they are known
			err := p.Check(fs, x.keys)
			if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v of keys %v: %v, want %q in it", x.f, x.keys, err, x.says)
			}
		}
	}
	if err := p.Check(nil, []godwit.Key{100}); err != nil {
		t.Errorf("no filters: %v", err)
	}
}

// The right to push what is kept is one.
func TestOnePushesWhatIsKeptAtATime(t *testing.T) {
	right := New(filtered(t, big), 1, true).Right()
	<-right
	select {
	case <-right:
		t.Error("two have it")
	default:
	}
	right <- struct{}{}
	<-right
}

// Where bytes bound the network, tables that allow it are rounded, and what that takes off is kept.
func TestAPushIsRoundedWhereTheNetworkIsStrained(t *testing.T) {
	sgd := optim.SGD{LR: 1}
	m := modelOf(t, godwit.Table{Name: "trained", Rows: 10, Dim: 1, Rule: sgd}, godwit.Table{Name: "added", Rows: 10, Dim: 1},
		godwit.Table{Name: "held", Rows: 10, Dim: 1, Rule: sgd, Filters: []godwit.Filter{big}},
		godwit.Table{Name: "compressed", Rows: 10, Dim: 1, Rule: sgd, Filters: []godwit.Filter{filter.Compress{Method: filter.S2}}})
	const x = 16 + 1.0/32
	keys, push, miss := []godwit.Key{1, 11, 21, 31}, []float32{x, x, x, x}, []int{0, 0, 1, 1, 2, 2, 3, 3}
	for _, strained := range []bool{false, true} {
		p := New(m, 1, true).Pipeline(godwit.WorkerID{})
		sent, codes, vals := p.Filter(t.Context(), ways(strained), slices.Clone(miss), keys, push)
		first, coding := float32(x), godwit.Raw
		kept := map[godwit.Key][]float32{}
		if strained {
			first, coding = 16, godwit.BFloat16
			kept[1] = []float32{1.0 / 32}
		}
		got := []float32{vals[sent[1]], vals[sent[3]], vals[sent[5]], vals[sent[7]]}
		if want := []float32{first, x, x, x}; !slices.Equal(got, want) || codes[0].Coding != coding || codes[1].Coding != godwit.Raw {
			t.Errorf("strained %v: sends %v as %v, want %v", strained, got, codes, want)
		}
		if p.Keep(sent, 0); fmt.Sprint(rows(p.Residual())) != fmt.Sprint(kept) {
			t.Errorf("strained %v: kept %v, want %v", strained, rows(p.Residual()), kept)
		}
	}
	own := godwit.WithFilters(t.Context()) // a call that brings none, and says so
	p := New(m, 1, true).Pipeline(godwit.WorkerID{})
	if _, codes, vals := p.Filter(own, ways(true), slices.Clone(miss), keys, push); len(codes) != 0 || !slices.Equal(vals, push) {
		t.Errorf("a push without filters is sent as %v of %v", vals, codes)
	}
}

// Ways are strained or not.
type ways bool

func (w ways) StrainedBy(int) bool { return bool(w) }

const idle = ways(false)

// add keeps more of a key.
func (r *Residual) add(k godwit.Key, v []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(k, v)
}

// What a worker pushes stays as it is in the worker's own memory, wherever in it something was kept of a key.
func TestWhatIsKeptIsAddedToACopyOfThePush(t *testing.T) {
	fs := New(filtered(t, big), 1, true)
	for kept := range 3 {
		p := fs.Pipeline(godwit.WorkerID{Local: kept})
		keys, push := []godwit.Key{1, 2, 3}, []float32{1, 2, 3, 4, 5, 6}
		p.residual.add(keys[kept], []float32{10, 20})
		want := slices.Clone(push)
		want[2*kept] += 10
		want[2*kept+1] += 20
		if got := p.AddKept(keys, push); !slices.Equal(got, want) || !slices.Equal(push, []float32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("with something kept of key %d, %v is pushed, want %v; the worker's own is %v", keys[kept], got, want, push)
		}
	}
}

// Filters draw anew in each call.
func TestACallIsFilteredByRandomNumbersOfItsOwn(t *testing.T) {
	p := New(filtered(t, filter.Skip{P: 0.5}), 1, true).Pipeline(godwit.WorkerID{})
	var keys []godwit.Key
	for k := range godwit.Key(200) {
		keys = append(keys, k)
	}
	sent := func() []int {
		var miss []int
		for i := range keys {
			miss = append(miss, i, 2*i)
		}
		got, _, _ := p.Filter(t.Context(), idle, miss, keys, make([]float32, 400))
		var pos []int
		for i := 0; i < len(got); i += 2 {
			pos = append(pos, got[i])
		}
		p.Keep(got, 0)
		return pos
	}
	if a, b := sent(), sent(); slices.Equal(a, b) {
		t.Errorf("two calls send the same %d of 200 keys", len(a))
	}
}

// What comes back after the worker has crossed is of the side before, and adds up with what is set aside of the key. What is set
// aside takes none of the room for what is kept.
func TestWhatComesBackAfterACutIsSetAside(t *testing.T) {
	m := filtered(t, big)
	var r Residual
	r.add(1, []float32{1, 2})
	r.add(2, []float32{3, 4})
	keys, vals, odd := r.Take([]godwit.Key{1}, nil)
	r.add(1, []float32{10, 20})
	if r.size += room; !r.full() { // as if there were more
		t.Fatal("there is room")
	}
	if r.Cross(); r.full() || r.Some() {
		t.Errorf("after the cut, %d floats of %d keys are kept", r.size, r.keys.Load())
	}
	r.Return(m, keys, vals, odd, 1)
	r.add(1, []float32{5, 5})
	keys, vals, odd = r.TakeAside(2)
	if !slices.Equal(keys, []godwit.Key{1, 2}) || !slices.Equal(vals, []float32{11, 22, 3, 4}) || odd {
		t.Errorf("%v of keys %v are set aside, of the odd side: %v", vals, keys, odd)
	}
	if got := rows(&r)[1]; !slices.Equal(got, []float32{5, 5}) {
		t.Errorf("%v is kept of key 1 since the cut", got)
	}
}
