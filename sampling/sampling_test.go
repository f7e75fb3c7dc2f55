package sampling

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomized tests; 0 takes one from the clock")

// fakeWorker is an Access whose row k has the value 100·k + i at position i.
type fakeWorker struct {
	dim     int
	local   func(k godwit.Key) bool // nil: everything
	pullErr error
	intErr  error

	pulled  []godwit.Key // by Pull, in order
	pulls   int
	found   int // successes of PullIfLocal
	intents []intent
}

type intent struct {
	keys       []godwit.Key
	start, end godwit.Clock
}

func (f *fakeWorker) PullIfLocal(k godwit.Key, dst []float32) bool {
	if len(dst) != f.dim || f.local != nil && !f.local(k) {
		return false
	}
	f.read(k, dst)
	f.found++
	return true
}

func (f *fakeWorker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	if f.pullErr != nil {
		return f.pullErr
	}
	if len(dst) != len(keys)*f.dim {
		return godwit.ErrLength
	}
	for i, k := range keys {
		f.read(k, dst[i*f.dim:(i+1)*f.dim])
	}
	f.pulls++
	f.pulled = append(f.pulled, keys...)
	return ctx.Err()
}

func (f *fakeWorker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	f.intents = append(f.intents, intent{slices.Clone(keys), start, end})
	return f.intErr
}

func (f *fakeWorker) read(k godwit.Key, dst []float32) {
	for i := range dst {
		dst[i] = float32(100*int(k) + i)
	}
}

// wrongValue returns the position of a value that is not its key's, or -1.
func wrongValue(keys []godwit.Key, vals []float32, dim int) int {
	for i, v := range vals {
		if v != float32(100*int(keys[i/dim])+i%dim) {
			return i
		}
	}
	return -1
}

const (
	testBase = 10 // keys of the other table before ours
	testDim  = 3
)

// testModel has the sampled table second, with keys from testBase on.
func testModel(t testing.TB, rows uint64) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(
		godwit.Table{Name: "other", Rows: testBase, Dim: 2},
		godwit.Table{Name: "sampled", Rows: rows, Dim: testDim})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newSampler(t testing.TB, dist Distribution, scheme Scheme, distinct bool, seed uint64) *Sampler {
	t.Helper()
	s, err := New(Spec{Name: "test", Table: 1, Dist: dist, Scheme: scheme, Distinct: distinct}, testModel(t, dist.Rows()), seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// draw prepares and pulls one sample of n keys, and checks the values.
func draw(t testing.TB, s *Sampler, w *fakeWorker, n int) []godwit.Key {
	t.Helper()
	id, err := s.Prepare(w, n, 5, 6)
	if err != nil {
		t.Fatal(err)
	}
	keys, vals := make([]godwit.Key, n), make([]float32, n*testDim)
	if err := s.Pull(context.Background(), w, id, keys, vals); err != nil {
		t.Fatal(err)
	}
	if i := wrongValue(keys, vals, testDim); i >= 0 {
		t.Fatalf("value %d is %v, which is not of key %d", i, vals[i], keys[i/testDim])
	}
	return keys
}

// schemes are all schemes, and some whose parameters make things happen soon.
func schemes() []Scheme {
	return append(Schemes(), Reuse{Pool: 7, Uses: 3}, Reuse{Pool: 7, Uses: 3, Postpone: true}, Repurpose{Keys: 3})
}

// exact are those whose samples are independent where everything is local.
func exact() []Scheme {
	return []Scheme{Independent{}, Prepared{}, Local{}, Repurpose{}, Reuse{Pool: 7, Uses: 1}, Reuse{Pool: 7, Uses: 1, Postpone: true}}
}

// wordFreq looks like the word counts of a text, with two words that do not occur.
var wordFreq = []float64{5000, 2500, 1700, 0, 900, 400, 400, 150, 70, 30, 0, 12, 5, 2, 1, 1}

func mustPower(t testing.TB, freq []float64, exponent float64) Distribution {
	t.Helper()
	d, err := Power(freq, exponent)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func dists(t testing.TB) []Distribution {
	return []Distribution{Uniform(16), LogUniform(16), mustPower(t, wordFreq, 0.75)}
}

// chi2 returns how far counts are from probs: the chi-square statistic as the
// standard normal deviate of the same probability (Wilson and Hilferty 1931:
// the cube root of chi²/df is nearly normal with mean 1 − 2/(9df) and variance
// 2/(9df)). Cells that expect fewer than 5 are counted together. A count where
// nothing is possible is infinitely far.
func chi2(counts []int, probs []float64) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	var stat, restWant, restGot float64
	cells := 0
	add := func(got, want float64) {
		stat += (got - want) * (got - want) / want
		cells++
	}
	for i, p := range probs {
		want := p * float64(n)
		switch {
		case p <= 0 && counts[i] > 0:
			return math.Inf(1)
		case want < 5:
			restWant += want
			restGot += float64(counts[i])
		default:
			add(float64(counts[i]), want)
		}
	}
	if restWant > 0.5 {
		add(restGot, restWant)
	}
	if cells < 2 {
		return 0
	}
	v := 2 / (9 * float64(cells-1))
	return (math.Cbrt(stat/float64(cells-1)) - (1 - v)) / math.Sqrt(v)
}

// maxDeviate rejects a true distribution in 3 of 100,000 tests, and seeds are
// fixed.
const maxDeviate = 4

func checkCounts(t *testing.T, counts []int, probs []float64) {
	t.Helper()
	if d := chi2(counts, probs); d > maxDeviate {
		t.Errorf("counts %v are %.1f standard deviations from probabilities %.4v", counts, d, probs)
	}
}

func probsOf(d Distribution) []float64 {
	p := make([]float64, d.Rows())
	for row := range p {
		p[row] = d.Prob(uint64(row))
	}
	return p
}

// count tallies the rows of n samples with replacement, pulled 7 at a time.
func count(t *testing.T, s *Sampler, w *fakeWorker, n int) []int {
	t.Helper()
	counts := make([]int, s.rows)
	for done := 0; done < n; done += 7 {
		for _, k := range draw(t, s, w, 7) {
			counts[k-testBase]++
		}
	}
	return counts
}

func TestTheChiSquareTestNoticesASmallBias(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	counts := make([]int, 16)
	for range 100_000 {
		row := r.Uint64N(16)
		if row == 3 && r.Float64() < 0.1 {
			row = 4
		}
		counts[row]++
	}
	if d := chi2(counts, probsOf(Uniform(16))); d < 2*maxDeviate {
		t.Errorf("a tenth of one row's draws went astray, and the deviate is only %.1f", d)
	}
}

func TestEverySchemeDrawsTheTargetWhereEverythingIsLocal(t *testing.T) {
	for _, d := range dists(t) {
		for _, scheme := range exact() {
			t.Run(d.Name()+"/"+scheme.Name(), func(t *testing.T) {
				s := newSampler(t, d, scheme, false, 1)
				checkCounts(t, count(t, s, &fakeWorker{dim: testDim}, 100_000), probsOf(d))
			})
		}
	}
}

func thirdIsLocal(k godwit.Key) bool { return k%3 == 0 }

func TestConformSchemesDrawTheTargetWhateverIsLocal(t *testing.T) {
	for _, d := range dists(t) {
		for _, scheme := range []Scheme{Independent{}, Prepared{}, Local{Tries: 1}, Reuse{Uses: 1}} {
			t.Run(d.Name()+"/"+scheme.Name(), func(t *testing.T) {
				s := newSampler(t, d, scheme, false, 2)
				checkCounts(t, count(t, s, &fakeWorker{dim: testDim, local: thirdIsLocal}, 100_000), probsOf(d))
			})
		}
	}
}

// localProbs is the formula of Local's comment.
func localProbs(d Distribution, local func(godwit.Key) bool, tries int) (probs []float64, q float64) {
	for row := range d.Rows() {
		if local(testBase + godwit.Key(row)) {
			q += d.Prob(row)
		}
	}
	none := math.Pow(1-q, float64(tries))
	for row := range d.Rows() {
		p := d.Prob(row)
		if local(testBase + godwit.Key(row)) {
			p *= (1 - none) / q
		} else {
			p *= none / (1 - q)
		}
		probs = append(probs, p)
	}
	return probs, q
}

func TestLocalHasTheStatedBias(t *testing.T) {
	for _, d := range dists(t) {
		for _, tries := range []int{2, 3, 10, 64} {
			t.Run(fmt.Sprintf("%s/tries=%d", d.Name(), tries), func(t *testing.T) {
				s := newSampler(t, d, Local{Tries: tries}, false, 3)
				w := &fakeWorker{dim: testDim, local: thirdIsLocal}
				counts := count(t, s, w, 50_000)
				probs, q := localProbs(d, thirdIsLocal, tries)
				checkCounts(t, counts, probs)

				st := s.Stats()
				if st.Pulled != uint64(w.found+len(w.pulled)) || st.Pulled != st.Prepared {
					t.Errorf("%+v: %d keys were found and %d pulled, which is not all that was prepared", st, w.found, len(w.pulled))
				}
				// Binomial: five standard deviations.
				tol := 5 * math.Sqrt(q*(1-q)/float64(st.Draws))
				if got := float64(w.found) / float64(st.Draws); math.Abs(got-q) > tol {
					t.Errorf("local keys a draw estimate %.4f, want %.4f ± %.4f", got, q, tol)
				}
			})
		}
	}
}

func TestLocalPullsADrawOfTheTargetWhenNothingIsLocal(t *testing.T) {
	d := LogUniform(16)
	s := newSampler(t, d, Local{}, false, 4)
	w := &fakeWorker{dim: testDim, local: func(godwit.Key) bool { return false }}
	checkCounts(t, count(t, s, w, 7000), probsOf(d))
	want := Stats{Prepared: 7000, Pulled: 7000, Draws: 7000 * defaultTries}
	if got := s.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if w.pulls != 1000 {
		t.Errorf("%d calls of Pull for 1000 pulls of 7 keys, want one each", w.pulls)
	}
}

func TestPreparedAnnouncesExactlyTheKeysItLaterReturns(t *testing.T) {
	s := newSampler(t, Uniform(100), Prepared{}, false, 5)
	w := &fakeWorker{dim: testDim}
	id, err := s.Prepare(w, 20, 7, 9)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.intents) != 1 || w.intents[0].start != 7 || w.intents[0].end != 9 {
		t.Fatalf("intents %+v, want one for [7, 9)", w.intents)
	}
	var got []godwit.Key
	for _, n := range []int{1, 0, 12, 7} {
		keys := make([]godwit.Key, n)
		if err := s.Pull(context.Background(), w, id, keys, make([]float32, n*testDim)); err != nil {
			t.Fatal(err)
		}
		got = append(got, keys...)
	}
	if !slices.Equal(got, w.intents[0].keys) {
		t.Errorf("pulled %v, announced %v", got, w.intents[0].keys)
	}
}

func TestSchemesThatDrawAtPullDoNotAnnounce(t *testing.T) {
	for _, scheme := range []Scheme{Independent{}, Local{}, Repurpose{}} {
		w := &fakeWorker{dim: testDim}
		draw(t, newSampler(t, Uniform(100), scheme, false, 5), w, 20)
		if len(w.intents) != 0 {
			t.Errorf("%s announced %v", scheme.Name(), w.intents)
		}
	}
}

func TestASeedAndANameGiveOneSequence(t *testing.T) {
	sequence := func(scheme Scheme, distinct bool, name string, seed uint64) []godwit.Key {
		s, err := New(Spec{Name: name, Table: 1, Dist: LogUniform(1000), Scheme: scheme, Distinct: distinct}, testModel(t, 1000), seed)
		if err != nil {
			t.Fatal(err)
		}
		w := &fakeWorker{dim: testDim, local: thirdIsLocal}
		if s.Watches() {
			for row := range uint64(60) {
				accessed(s, row)
			}
		}
		return append(draw(t, s, w, 30), draw(t, s, w, 20)...)
	}
	for _, scheme := range schemes() {
		for _, distinct := range []bool{false, true} {
			a := sequence(scheme, distinct, "negatives", 7)
			if b := sequence(scheme, distinct, "negatives", 7); !slices.Equal(a, b) {
				t.Errorf("%s, distinct %v: one seed gave %v and %v", scheme.Name(), distinct, a, b)
			}
			if b := sequence(scheme, distinct, "negatives", 8); slices.Equal(a, b) {
				t.Errorf("%s, distinct %v: two seeds gave the same keys", scheme.Name(), distinct)
			}
			if b := sequence(scheme, distinct, "positives", 7); slices.Equal(a, b) {
				t.Errorf("%s, distinct %v: two names gave the same keys", scheme.Name(), distinct)
			}
		}
	}
}

// A change of these keys breaks the replay of earlier runs: it needs a reason.
// A sample with seeds of its own does not depend on what was drawn before it, or between its
// parts.
func TestASeededSampleIsDrawnAgain(t *testing.T) {
	for _, scheme := range []Scheme{Independent{}, Prepared{}, Local{}} {
		for _, distinct := range []bool{false, true} {
			var all [3][]godwit.Key // the last by another seed
			for run := range all {
				s, w := newSampler(t, Uniform(1000), scheme, distinct, uint64(run)), &fakeWorker{dim: 3}
				for range run * 3 {
					draw(t, s, w, 5)
				}
				s.Seed(7, 9+uint64(run/2))
				id, err := s.Prepare(w, 20, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				for range 4 {
					keys := make([]godwit.Key, 5)
					if err := s.Pull(t.Context(), w, id, keys, make([]float32, 15)); err != nil {
						t.Fatal(err)
					}
					all[run] = append(all[run], keys...)
					draw(t, s, w, run)
				}
			}
			if !slices.Equal(all[0], all[1]) {
				t.Errorf("%s, distinct %v: %v is drawn, and then %v", scheme.Name(), distinct, all[0], all[1])
			}
			if slices.Equal(all[0], all[2]) {
				t.Errorf("%s, distinct %v: two seeds draw %v", scheme.Name(), distinct, all[0])
			}
		}
	}
}

func TestSequencesStayWhatTheyAre(t *testing.T) {
	want := map[string][]godwit.Key{
		"uniform(16)":     {16, 13, 18, 20, 14, 24, 24, 12},
		"log-uniform(16)": {11, 18, 10, 16, 14, 21, 16, 25},
		"power(16,0.75)":  {10, 12, 11, 11, 12, 10, 14, 11},
	}
	for _, d := range dists(t) {
		s := newSampler(t, d, Independent{}, false, 1)
		if got := draw(t, s, &fakeWorker{dim: testDim}, 8); !slices.Equal(got, want[d.Name()]) {
			t.Errorf("%s: seed 1 draws %v, want %v", d.Name(), got, want[d.Name()])
		}
	}
}

func TestErrorsNameTheCauseAndChangeNothing(t *testing.T) {
	ctx := context.Background()
	w := &fakeWorker{dim: testDim}
	s := newSampler(t, Uniform(16), Independent{}, false, 1)
	id, err := s.Prepare(w, 5, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	pull := func(id godwit.SampleID, n, floats int) error {
		return s.Pull(ctx, w, id, make([]godwit.Key, n), make([]float32, floats))
	}
	before := s.Stats()
	for _, c := range []struct {
		what string
		got  error
		want error
	}{
		{"more than was prepared", pull(id, 6, 18), godwit.ErrSample},
		{"an id never given", pull(id+1, 1, 3), godwit.ErrSample},
		{"an id of a later use", pull(id+MaxOpen, 1, 3), godwit.ErrSample},
		{"a key of the empty sample", pull(0, 1, 3), godwit.ErrSample},
		{"a short buffer", pull(id, 2, 5), godwit.ErrLength},
		{"a long buffer", pull(id, 0, 1), godwit.ErrLength},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got error %v, want one of kind %q", c.what, c.got, c.want)
		}
	}
	if _, err := s.Prepare(w, -1, 0, 1); err == nil {
		t.Error("a sample of -1 keys was prepared")
	}
	if got := s.Stats(); got != before {
		t.Errorf("the errors changed the stats from %+v to %+v", before, got)
	}
	if err := pull(id, 5, 15); err != nil {
		t.Errorf("after the errors: %v", err)
	}
	if err := pull(id, 0, 0); !errors.Is(err, godwit.ErrSample) {
		t.Errorf("a sample pulled to its end gave %v, want %v", err, godwit.ErrSample)
	}
}

func TestTheEmptySampleIsAlwaysThere(t *testing.T) {
	w := &fakeWorker{dim: testDim}
	s := newSampler(t, Uniform(16), Prepared{}, true, 1)
	id, err := s.Prepare(w, 0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Pull(context.Background(), w, id, nil, nil); err != nil {
			t.Error(err)
		}
		s.Finish(id)
	}
	if s.Stats() != (Stats{}) || len(w.intents) != 0 {
		t.Errorf("the empty sample left stats %+v and intents %v", s.Stats(), w.intents)
	}
}

func TestSpecsAreCheckedAgainstTheModel(t *testing.T) {
	m := testModel(t, 16)
	good := Spec{Name: "n", Table: 1, Dist: Uniform(16), Scheme: Local{}}
	if _, err := New(good, m, 1); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Spec){
		"a table beyond the last":    func(s *Spec) { s.Table = 2 },
		"a negative table":           func(s *Spec) { s.Table = -1 },
		"no distribution":            func(s *Spec) { s.Dist = nil },
		"a level beyond the last":    func(s *Spec) { s.Level = BestEffort + 1 },
		"a negative level":           func(s *Spec) { s.Level = -1 },
		"a negative pool":            func(s *Spec) { s.Scheme = Reuse{Pool: -1} },
		"a huge pool":                func(s *Spec) { s.Scheme = Reuse{Pool: maxPool + 1} },
		"a negative number of uses":  func(s *Spec) { s.Scheme = Reuse{Uses: -1} },
		"a negative number of keys":  func(s *Spec) { s.Scheme = Repurpose{Keys: -1} },
		"a huge number of keys":      func(s *Spec) { s.Scheme = Repurpose{Keys: maxRecent + 1} },
		"more rows than the table":   func(s *Spec) { s.Dist = Uniform(17) },
		"no rows":                    func(s *Spec) { s.Dist = Uniform(0) },
		"log-uniform over no rows":   func(s *Spec) { s.Dist = LogUniform(0) },
		"a negative number of tries": func(s *Spec) { s.Scheme = Local{Tries: -1} },
		"a pointer to a scheme":      func(s *Spec) { s.Scheme = &Repurpose{} },
	} {
		spec := good
		change(&spec)
		if _, err := New(spec, m, 1); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestFrequenciesAreChecked(t *testing.T) {
	for what, c := range map[string]struct {
		freq     []float64
		exponent float64
	}{
		"none":                 {nil, 1},
		"all zero":             {[]float64{0, 0}, 1},
		"negative":             {[]float64{1, -1}, 1},
		"not a number":         {[]float64{1, math.NaN()}, 1},
		"infinite":             {[]float64{1, math.Inf(1)}, 1},
		"exponent is NaN":      {[]float64{1}, math.NaN()},
		"exponent is infinite": {[]float64{1}, math.Inf(-1)},
	} {
		if _, err := Power(c.freq, c.exponent); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestProbabilitiesAreThoseOfTheFormulaAndSumToOne(t *testing.T) {
	sum := 0.0
	for _, f := range wordFreq {
		sum += math.Pow(f, 0.75)
	}
	for _, d := range append(dists(t), mustPower(t, []float64{1e300, 1e-300, 0}, 5), Uniform(1), LogUniform(1)) {
		total, support := 0.0, uint64(0)
		for _, p := range probsOf(d) {
			total += p
			if p > 0 {
				support++
			}
		}
		// Relative rounding of sums of at most 16 numbers.
		if math.Abs(total-1) > 1e-14 {
			t.Errorf("%s: probabilities sum to 1 + %g", d.Name(), total-1)
		}
		if support != d.Support() {
			t.Errorf("%s: support %d, but %d rows are possible", d.Name(), d.Support(), support)
		}
	}
	p := mustPower(t, wordFreq, 0.75)
	for row, f := range wordFreq {
		if got, want := p.Prob(uint64(row)), math.Pow(f, 0.75)/sum; math.Abs(got-want) > 1e-14 {
			t.Errorf("power: row %d has probability %v, want %v", row, got, want)
		}
	}
}

func TestAliasColumnsHoldTheProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	freq := make([]float64, 5000)
	for i := range freq {
		freq[i] = math.Exp(4 * r.NormFloat64())
	}
	p := mustPower(t, freq, 0.75).(*power)
	held := make([]float64, len(freq))
	for i, c := range p.columns {
		own := float64(c.threshold) / (1 << 32)
		held[i] += own
		held[c.other] += 1 - own
	}
	for i := range held {
		// Each column is off by at most 2^-32, and a row has about as many
		// columns as its probability is worth; 1e-12 is for the sums.
		tol := (2+float64(len(freq))*p.probs[i])/(1<<32) + 1e-12
		if got, want := held[i], p.probs[i]*float64(len(freq)); math.Abs(got-want) > tol*2 {
			t.Fatalf("row %d holds %v columns, want %v ± %v", i, got, want, tol*2)
		}
	}
}

// wild is a user's distribution that breaks its promises.
type wild struct {
	Distribution
	row     uint64
	support uint64
}

func (w wild) Draw(*rand.Rand) uint64 { return w.row }
func (w wild) Support() uint64        { return w.support }

func TestADistributionThatBreaksItsPromiseIsAnError(t *testing.T) {
	pull := func(dist Distribution, distinct bool, n int) error {
		s := newSampler(t, dist, Local{}, distinct, 1)
		w := &fakeWorker{dim: testDim}
		id, err := s.Prepare(w, n, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s.Pull(context.Background(), w, id, make([]godwit.Key, n), make([]float32, n*testDim))
	}
	if err := pull(wild{Uniform(16), 16, 16}, false, 1); err == nil {
		t.Error("a row beyond the last was drawn without an error")
	}
	if err := pull(wild{mustPower(t, wordFreq, 1), 0, 16}, true, 16); err == nil {
		t.Error("16 distinct rows came out of 14")
	}
}

func TestSamplesAreBoundedAndFreed(t *testing.T) {
	w := &fakeWorker{dim: testDim}
	s := newSampler(t, Uniform(16), Independent{}, false, 1)
	var ids []godwit.SampleID
	for range MaxOpen {
		id, err := s.Prepare(w, 2, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if id == 0 || id >= 1<<IDBits {
			t.Fatalf("id %d, want 1 … 2^%d-1", id, IDBits)
		}
		ids = append(ids, id)
	}
	if _, err := s.Prepare(w, 1, 0, 1); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("one sample more than MaxOpen gave %v, want %v", err, godwit.ErrFull)
	}
	for i, id := range ids {
		if i%2 == 0 {
			s.Finish(id)
			s.Finish(id)
			continue
		}
		if err := s.Pull(context.Background(), w, id, make([]godwit.Key, 2), make([]float32, 2*testDim)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Stats().Open != 0 || s.left != 0 {
		t.Errorf("%d samples with %d keys are open after all were finished or pulled", s.Stats().Open, s.left)
	}

	if _, err := s.Prepare(w, MaxPrepared+1, 0, 1); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("more keys than MaxPrepared gave %v, want %v", err, godwit.ErrFull)
	}
	if _, err := s.Prepare(w, MaxPrepared, 0, 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Prepare(w, 1, 0, 1); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("a key above MaxPrepared gave %v, want %v", err, godwit.ErrFull)
	}
	if len(s.slots) != MaxOpen {
		t.Errorf("%d slots for at most %d open samples", len(s.slots), MaxOpen)
	}
}

// A sample that could not be announced is drawn by its seeds when it is prepared again.
func TestASeededSampleThatIsRefusedIsDrawnBySeedsLater(t *testing.T) {
	var all [2][]godwit.Key
	for run := range all {
		s, w := newSampler(t, Uniform(1000), Prepared{}, false, uint64(run)), &fakeWorker{dim: testDim}
		s.Seed(7, 9)
		if run == 1 {
			if _, err := s.Prepare(&fakeWorker{dim: testDim, intErr: godwit.ErrFull}, 20, 0, 1); !errors.Is(err, godwit.ErrFull) {
				t.Fatalf("prepare returned %v, want %v", err, godwit.ErrFull)
			}
		}
		all[run] = draw(t, s, w, 20)
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("%v is drawn, and after an error %v", all[0], all[1])
	}
}

func TestErrorsOfTheWorkerArePassedOnAndLeakNothing(t *testing.T) {
	cause := errors.New("cause")
	for _, scheme := range schemes() {
		s := newSampler(t, Uniform(16), scheme, true, 1)
		w := &fakeWorker{dim: testDim, local: thirdIsLocal, pullErr: cause}
		id, err := s.Prepare(w, 16, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Pull(context.Background(), w, id, make([]godwit.Key, 10), make([]float32, 10*testDim))
		if !errors.Is(err, cause) {
			t.Errorf("%s: pull returned %v, want %v", scheme.Name(), err, cause)
		}
		w.pullErr = nil
		if err := s.Pull(context.Background(), w, id, make([]godwit.Key, 6), make([]float32, 6*testDim)); err != nil {
			t.Errorf("%s: the rest of the sample: %v", scheme.Name(), err)
		}
		if s.Stats().Open != 0 || s.left != 0 {
			t.Errorf("%s: %d samples with %d keys stay open", scheme.Name(), s.Stats().Open, s.left)
		}
	}

	s := newSampler(t, Uniform(16), Prepared{}, false, 1)
	if _, err := s.Prepare(&fakeWorker{dim: testDim, intErr: cause}, 4, 0, 1); !errors.Is(err, cause) {
		t.Errorf("prepare returned %v, want the intent's error", err)
	}
	if s.Stats().Open != 0 || s.left != 0 {
		t.Errorf("a failed Prepare left %d samples with %d keys open", s.Stats().Open, s.left)
	}
}

// TestRandomCallsKeepTheBooks runs random Prepare, Pull and Finish calls on many
// open samples against the obvious record of them.
func TestRandomCallsKeepTheBooks(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	for _, scheme := range schemes() {
		for _, distinct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/distinct=%v", scheme.Name(), distinct), func(t *testing.T) {
				randomCalls(t, scheme, distinct, seed)
			})
		}
	}
}

func randomCalls(t *testing.T, scheme Scheme, distinct bool, seed uint64) {
	type book struct {
		id   godwit.SampleID
		left int
		got  map[godwit.Key]bool
	}
	r := rand.New(rand.NewPCG(seed, 0))
	d := LogUniform(40)
	s := newSampler(t, d, scheme, distinct, seed)
	local := r.Uint64()
	w := &fakeWorker{dim: testDim, local: func(k godwit.Key) bool { return local>>(k%64)&1 == 1 }}
	var open []*book
	left := 0
	for range 5000 {
		switch op := r.IntN(10); {
		case op == 0:
			local = r.Uint64() & r.Uint64()
			if s.Watches() {
				accessed(s, r.Uint64N(d.Rows()), r.Uint64N(d.Rows()))
			}
		case op < 4:
			n := 1 + r.IntN(int(d.Rows()))
			id, err := s.Prepare(w, n, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, &book{id, n, map[godwit.Key]bool{}})
			left += n
		case len(open) > 0:
			i := r.IntN(len(open))
			b := open[i]
			if op == 4 {
				s.Finish(b.id)
				left -= b.left
				b.left = 0
			} else {
				n := r.IntN(b.left + 1)
				keys, vals := make([]godwit.Key, n), make([]float32, n*testDim)
				if err := s.Pull(context.Background(), w, b.id, keys, vals); err != nil {
					t.Fatal(err)
				}
				if i := wrongValue(keys, vals, testDim); i >= 0 {
					t.Fatalf("value %d is %v, which is not of key %d", i, vals[i], keys[i/testDim])
				}
				for _, k := range keys {
					if k < testBase || k >= testBase+godwit.Key(d.Rows()) {
						t.Fatalf("key %d is not of the table", k)
					}
					if distinct && b.got[k] {
						t.Fatalf("key %d came twice", k)
					}
					b.got[k] = true
				}
				b.left -= n
				left -= n
			}
			if b.left == 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
		if s.Stats().Open != len(open) || s.left != left {
			t.Fatalf("the sampler has %d samples with %d keys open, want %d with %d", s.Stats().Open, s.left, len(open), left)
		}
	}
}

// Weights that no float64 holds are those of the same proportions.
func TestPowersThatOverflowHaveTheirProportions(t *testing.T) {
	for _, c := range []struct{ freq, exponent float64 }{{1e-300, 2}, {1e300, 2}, {1e-300, -2}} {
		d := mustPower(t, []float64{c.freq, 2 * c.freq, 0}, c.exponent)
		if got, want := d.Prob(1)/d.Prob(0), math.Pow(2, c.exponent); math.Abs(got-want) > 1e-6*want || d.Support() != 2 {
			t.Errorf("frequencies of %v to the power of %v have the proportion %v, want %v", c.freq, c.exponent, got, want)
		}
	}
}

// The ids of a slot begin anew after the last one, and stay within their bits.
func TestIDsStayWithinTheirBits(t *testing.T) {
	s := newSampler(t, Uniform(16), Independent{}, false, 1)
	w := &fakeWorker{dim: testDim}
	draw(t, s, w, 1)
	s.slots[0].gen = 1<<genBits - 1
	id, err := s.Prepare(w, 1, 0, 1)
	if err != nil || id == 0 || id >= 1<<IDBits {
		t.Fatalf("id %#x, %v", id, err)
	}
	if err := s.Pull(context.Background(), w, id, make([]godwit.Key, 1), make([]float32, testDim)); err != nil {
		t.Error(err)
	}
}
