package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
)

// stormFilters are the filters of a storm's tables where the config leaves them open.
// Those of the tables of vector clocks let whole numbers pass, sooner or later. One
// more table is of fractions, which filters round; it is judged by what is conserved.
// Draws are of their own, so that a storm is otherwise that of its seed.
type stormFilters struct {
	rng     *rand.Rand
	frames  []godwit.Filter // none or one, which compresses the frames of tables
	each    [clockTables][]godwit.Filter
	holds   [clockTables]bool // pushes may be held back
	parts   []godwit.Filter   // of the table of fractions
	rule    godwit.Rule       // … its rule, nil adds
	grids   bool              // they round to multiples of a step
	answers float64           // what a rounded answer may lack, as a share of the largest value
	rounded int               // vectors

	pushed  map[godwit.Key]*pushedParts
	dropped bool // a push was given up: when it arrives, nobody knows
}

// pushedParts is all that was pushed to a key, exactly: fractions are multiples of
// 2⁻¹⁰ up to 2, few enough for the sum in float32 to have none that is cut off.
type pushedParts struct {
	sum  [partsDim]float64
	abs  [partsDim]float64
	many int
}

const (
	partsTable = clockTables
	partsRows  = 2
	partsDim   = 8 // so many that a step for single vectors pays
)

// newStormFilters draws the filters of a storm; nil in half of the storms, which have
// none.
func newStormFilters(seed uint64) *stormFilters {
	rng := rand.New(rand.NewPCG(seed, 0xf117e5))
	if rng.IntN(2) == 0 {
		return nil
	}
	l := &stormFilters{rng: rng, pushed: map[godwit.Key]*pushedParts{}}
	switch rng.IntN(4) {
	case 0:
		l.frames = []godwit.Filter{filter.Compress{Method: filter.S2}}
	case 1:
		l.frames = []godwit.Filter{filter.Compress{Method: filter.Zstd}}
	}
	for t := range l.each {
		if t != mostTable && rng.IntN(3) > 0 {
			l.each[t], l.holds[t] = l.whole()
		}
	}
	l.parts = l.rounding()
	return l
}

// whole draws filters that let whole numbers pass, and says whether they may hold them
// back for a while.
func (l *stormFilters) whole() (fs []godwit.Filter, holds bool) {
	switch l.rng.IntN(3) {
	case 0:
		fs = append(fs, filter.Significant{Threshold: float64(2 + l.rng.IntN(2))})
	case 1:
		fs = append(fs, filter.Skip{P: []float64{0.2, 0.6}[l.rng.IntN(2)]})
	}
	holds = len(fs) > 0
	if l.rng.IntN(2) == 0 {
		fs = append(fs, filter.BF16{})
	}
	return append(fs, l.writing()...), holds
}

// near has the table of fractions rounded by no filter, but where bytes bound the network.
func (l *stormFilters) near() {
	l.parts, l.rule, l.grids, l.answers = nil, adding{}, false, 0
}

// writing draws filters that change how values are written.
func (l *stormFilters) writing() (fs []godwit.Filter) {
	if l.rng.IntN(2) == 0 {
		fs = append(fs, filter.Sparse{})
	}
	if l.rng.IntN(2) == 0 {
		fs = append(fs, l.frames...)
	}
	return fs
}

// rounding draws filters that round fractions.
func (l *stormFilters) rounding() (fs []godwit.Filter) {
	if l.rng.IntN(3) == 0 {
		fs = append(fs, filter.Skip{P: 0.3})
	}
	answers := l.rng.IntN(3) == 0
	var r godwit.Quantizer
	share := 0.0
	switch l.rng.IntN(3) {
	case 0:
		r, share = filter.BF16{Answers: answers}, 1.0/128
	case 1:
		r, share = filter.Fixed{Bytes: 1, Answers: answers}, 1.0/127
	case 2:
		r, share = filter.Fixed{Bytes: 2, Answers: answers}, 1.0/32767
	}
	if answers {
		l.answers = share
	}
	_, exact := r.(filter.BF16)
	l.grids = !exact
	return append(append(fs, noted{r, &l.rounded}), l.writing()...)
}

// noted is a quantizer that counts the vectors that it changed.
type noted struct {
	godwit.Quantizer
	rounded *int
}

func (n noted) Filter(b *godwit.FilterBatch) {
	var was []float32
	for i := range b.Keys {
		if b.Sent(i) {
			was = append(was, b.Vec(i)...)
		}
	}
	n.Quantizer.Filter(b)
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		if !slices.Equal(was[:b.Dim], b.Vec(i)) {
			*n.rounded++
		}
		was = was[b.Dim:]
	}
}

func (n noted) Quantize(vals []float32, seed uint64) godwit.Encoding {
	was := slices.Clone(vals)
	f := n.Quantizer.Quantize(vals, seed)
	if !slices.Equal(was, vals) {
		*n.rounded++
	}
	return f
}

// on gives the tables of vector clocks their filters, and adds the table of fractions.
func (l *stormFilters) on(tables []godwit.Table) []godwit.Table {
	for t, fs := range l.each {
		tables[t].Filters = fs
	}
	return append(tables, godwit.Table{Name: "parts", Rows: partsRows, Dim: partsDim, Rule: l.rule, Filters: l.parts})
}

func (l *stormFilters) String() string {
	var all []string
	for _, fs := range append(slices.Clone(l.each[:]), l.parts) {
		var names []string
		for _, f := range fs {
			names = append(names, f.Name())
		}
		all = append(all, "["+strings.Join(names, " ")+"]")
	}
	return "filters " + strings.Join(all, " ")
}

// held reports whether filters may hold back pushes to a key.
func (s *storm) held(k godwit.Key) bool {
	if s.lossy == nil {
		return false
	}
	t, _ := s.model.Locate(k)
	return t < clockTables && s.lossy.holds[t]
}

// part lets a worker do something with the table of fractions.
func (x *stormWorker) part(ctx context.Context) error {
	keys := make([]godwit.Key, 1+x.rng.IntN(2))
	for i := range keys {
		keys[i] = x.model.Key(partsTable, x.rng.Uint64N(partsRows))
	}
	switch x.rng.IntN(8) {
	case 0:
		o := &operation{keys: keys, vals: x.values(keys), gave: &x.cancelled.Pulls, done: func(int, int) error { return nil }}
		return x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) { return x.w.PullAsync(ctx, keys, o.vals) })
	case 1:
		start := x.w.Clock() + godwit.Clock(x.rng.IntN(3))
		end := start + 2
		if x.lossy.rule != nil {
			end -= godwit.Clock(x.rng.IntN(2)) // may be fetched ahead
		}
		x.last = max(x.last, end)
		return x.w.Intent(keys, start, end)
	case 2:
		if x.moves {
			return x.begin(ctx, &operation{gave: &x.cancelled.Others}, func(ctx context.Context) (godwit.Handle, error) { return x.w.LocalizeAsync(ctx, keys) })
		}
	}
	return x.pushPart(ctx, keys)
}

// pushPart pushes fractions. It gives up waiting for them, but not issuing them: so
// all of them count.
func (x *stormWorker) pushPart(ctx context.Context, keys []godwit.Key) error {
	o := &operation{keys: keys, gave: &x.cancelled.Pushes, sure: true, done: func(int, int) error { return nil }}
	o.dropped = func(int) { x.lossy.dropped = true }
	push := x.values(keys)
	for i := range push {
		push[i] = float32(x.rng.IntN(1<<12)-1<<11) / (1 << 10)
	}
	for i, k := range keys {
		x.lossy.push(k, push[i*partsDim:(i+1)*partsDim])
	}
	return x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) {
		defer clear(push)
		return x.w.PushAsync(ctx, keys, push)
	})
}

func (l *stormFilters) push(k godwit.Key, v []float32) {
	p := l.pushed[k]
	if p == nil {
		p = &pushedParts{}
		l.pushed[k] = p
	}
	p.many++
	for i, f := range v {
		p.sum[i] += float64(f)
		p.abs[i] += math.Abs(float64(f))
	}
}

// conserved judges the value of a key of fractions to which all was pushed. Of what
// BF16 rounds, float32 cuts nothing off, so the sum is exact. Multiples of a step are
// no multiples of 2⁻¹⁰: for each push there are some eight additions on its way, each
// with an error of 2⁻²⁴ of what there may be. A rounded answer lacks a quantum more.
func (l *stormFilters) conserved(k godwit.Key, v []float32, answer bool) error {
	p := l.pushed[k]
	if p == nil || v == nil {
		if p != nil {
			return fmt.Errorf("sim: %d pushes of fractions to key %d are lost", p.many, k)
		}
		return nil
	}
	for i, want := range p.sum {
		margin := 0.0
		if l.grids {
			margin = float64(p.many+1) * p.abs[i] / (1 << 21)
		}
		if answer {
			margin += l.answers * slices.Max(p.abs[:])
		}
		if got := float64(v[i]); !(math.Abs(got-want) <= margin) {
			return fmt.Errorf("sim: of %d pushes of fractions to key %d, %v in all, arrived %v: float %d differs by %g, the rounding of float32 explains %g", p.many, k, p.sum, v, i, got-want, margin)
		}
	}
	return nil
}

// conserves judges what a worker reads of fractions when all was synchronized.
func (x *stormWorker) conserves(ctx context.Context) error {
	if x.lossy == nil || x.lossy.dropped {
		return nil
	}
	v := make([]float32, partsDim)
	for row := range uint64(partsRows) {
		k := x.model.Key(partsTable, row)
		if err := x.w.Pull(ctx, []godwit.Key{k}, v); err != nil {
			return err
		}
		if err := x.lossy.conserved(k, v, true); err != nil {
			return fmt.Errorf("worker %d, when all was synchronized: %w", x.id, err)
		}
	}
	return nil
}
