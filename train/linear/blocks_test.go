package linear

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

func newBlocks(t testing.TB, c BlockConfig, data *libsvm.Splits) *Blocks {
	t.Helper()
	task, err := NewBlocks(c, data)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// byBlocks returns settings that cut blocks, of few features too.
func byBlocks() BlockConfig {
	c := DefaultBlockConfig()
	c.Blocks = manyBlocks
	return c
}

// scaled gives the features values of all sizes.
func scaled(data *libsvm.Splits, seed uint64) *libsvm.Splits {
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range data.Train.Values {
		data.Train.Values[i] = float32(r.NormFloat64() * math.Exp(r.NormFloat64()))
	}
	return data
}

func TestTheObjectiveNeverRisesWhateverTheBlocksDelayAndNodes(t *testing.T) {
	data := scaled(generated(t, func(s *libsvm.Spec) { s.Examples, s.Features, s.PerExample = 1500, 200, 30 }), 1)
	passes := 12
	if racing.Enabled {
		passes = 4
	}
	for _, x := range []struct{ blocks, delay, nodes int }{{0, 0, 1}, {0, 2, 3}, {1, 0, 1}, {5, 0, 2}, {7, 2, 3}, {16, 3, 1}, {1000, 0, 2}, {1000, 10000, 2}} {
		c := byBlocks()
		c.Blocks, c.Delay, c.L2 = x.blocks, x.delay, 0.1
		r, _ := trained[Turn](t, newBlocks(t, c, data), x.nodes, train.Options{Epochs: passes})
		ls := r[0].Losses
		for i, l := range ls {
			if l.Examples != int64(data.Train.Len()) {
				t.Fatalf("%+v: pass %d counts %d examples, want %d", x, i, l.Examples, data.Train.Len())
			}
			// Float32 sums over examples are good to about 1e-6 of their size.
			if i > 0 && l.Sum > ls[i-1].Sum*(1+1e-6) {
				t.Errorf("%+v: the objective rises from %v to %v in pass %d", x, ls[i-1].Sum, l.Sum, i)
			}
		}
		if first, last := ls[0].Sum, ls[len(ls)-1].Sum; !(last < 0.99*first) {
			t.Errorf("%+v: the objective went from %v to %v only", x, first, last)
		}
	}
}

// A slow twin: proximal gradient with one step length for all, in float64.
func minimumOf(set *libsvm.Set, l1, l2 float64) float64 {
	w := make([]float64, set.Width+1) // the bias is last
	margins := func() []float64 {
		m := make([]float64, set.Len())
		for i := range m {
			_, fs, xs := set.Row(i)
			m[i] = w[set.Width]
			for k, f := range fs {
				m[i] += w[f] * float64(xs[k])
			}
		}
		return m
	}
	sign := func(y float32) float64 {
		if y > 0 {
			return 1
		}
		return -1
	}
	longest, sum := 0.0, 0.0
	for i := range set.Len() {
		_, _, xs := set.Row(i)
		n := 1.0
		for _, x := range xs {
			n += float64(x) * float64(x)
		}
		longest += n / 4 // a bound of the largest curvature
	}
	for range 5000 {
		g := make([]float64, len(w))
		for i, m := range margins() {
			y, fs, xs := set.Row(i)
			s := -sign(y) / (1 + math.Exp(sign(y)*m))
			for k, f := range fs {
				g[f] += s * float64(xs[k])
			}
			g[set.Width] += s
		}
		for j := range w {
			x := w[j] - g[j]/longest
			if j < set.Width {
				x = math.Copysign(max(0, math.Abs(x)-l1/longest), x) / (1 + l2/longest)
			}
			w[j] = x
		}
	}
	for i, m := range margins() {
		y, _, _ := set.Row(i)
		sum += math.Log1p(math.Exp(-sign(y) * m))
	}
	for j := range set.Width {
		sum += l1*math.Abs(w[j]) + l2/2*w[j]*w[j]
	}
	return sum
}

func TestBlocksEndAtTheMinimumThatASlowTwinFinds(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) {
		s.Examples, s.Features, s.PerExample, s.Relevant = 300, 20, 4, 10
	})
	want := minimumOf(data.Train, 2, 0.5)
	for _, x := range []struct {
		blocks, passes int
		kkt            float32
	}{{6, 200, 0}, {6, 200, 0.9}, {0, 20, 0.9}} {
		c := byBlocks()
		c.Blocks, c.Delay, c.L1, c.L2, c.KKT = x.blocks, 1, 2, 0.5, x.kkt
		r, _ := trained[Turn](t, newBlocks(t, c, data), 2, train.Options{Epochs: x.passes})
		if got := r[0].Losses[x.passes-1].Sum; math.Abs(got/want-1) > 1e-4 {
			t.Errorf("%+v: the objective ends at %v, want %v", x, got, want)
		}
	}
}

func TestTheOutcomeIsTheSameOnAnyNumberOfNodes(t *testing.T) {
	for _, blocks := range []int{0, manyBlocks} {
		sameOnNodes(t, blocks)
	}
}

func sameOnNodes(t *testing.T, blocks int) {
	data := generated(t, func(s *libsvm.Spec) { s.Features = 300 })
	passes := 6
	if racing.Enabled {
		passes = 2
	}
	var want Quality
	for _, nodes := range []int{1, 2, 5} {
		c := byBlocks()
		c.Blocks = blocks
		task := newBlocks(t, c, data)
		_, envs := trained[Turn](t, task, nodes, train.Options{Epochs: passes})
		q := evaluatedBy(t, task.model, envs, data.Test)
		if nodes == 1 {
			want = q
		}
		if math.Abs(q.LogLoss-want.LogLoss) > 1e-5 || q.NonZero != want.NonZero {
			t.Errorf("on %d nodes: %v, on one: %v", nodes, q, want)
		}
	}
}

func TestParabolasTouchTheLossAndLieNowhereBelowIt(t *testing.T) {
	loss := func(m float64) float64 { return math.Log1p(math.Exp(-m)) }
	for m := -12.0; m <= 12; m += 0.37 {
		g := -1 / (1 + math.Exp(m))
		for d := -20.0; d <= 20; d += 0.21 {
			if above := loss(m) + g*d + parabola(m)/2*d*d - loss(m+d); above < -1e-9 {
				t.Fatalf("at %v, %v further, the parabola is %v below the loss", m, d, -above)
			}
		}
	}
	for _, m := range []float64{0, 9e-4, 1.1e-3, 1e4, -1e4} {
		if c := parabola(m); !(c > 0 && c <= 0.25) {
			t.Errorf("the curvature at %v is %v", m, c)
		}
	}
}

func TestAWeightGoesToTheMinimumOfItsParabolaAndPenalty(t *testing.T) {
	const seed = 8
	r := rand.New(rand.NewPCG(seed, 0))
	data := generated(t, nil)
	for range 300 {
		c := byBlocks()
		c.L1, c.L2 = r.Float32()*3, r.Float32()*float32(r.IntN(2))
		tr := &blockTrainer{task: newBlocks(t, c, data)}
		p := int32(r.IntN(2) * len(tr.task.used)) // the first feature, or the bias
		w, g, u := float32(r.NormFloat64()), float32(r.NormFloat64()*3), 0.1+r.Float32()*5
		if r.IntN(3) == 0 {
			w = 0
		}
		l1, l2 := float64(c.L1), float64(c.L2)
		if p > 0 {
			l1, l2 = 0, 0
		}
		value := func(to float64) float64 {
			d := to - float64(w)
			return float64(g)*d + float64(u)/stretch/2*d*d + l1*math.Abs(to) + l2/2*to*to
		}
		to, left := tr.minimum(p, w, g, u)
		for _, d := range []float64{-1, -1e-2, 1e-2, 1} {
			if value(float64(to)+d) < value(float64(to))-1e-6 {
				t.Fatalf("weight %v, gradient %v, curvature %v, L1 %v, L2 %v goes to %v; %v is lower", w, g, u, l1, l2, to, float64(to)+d)
			}
		}
		if want := w == 0 && math.Abs(float64(g)) < 0.9*l1; left != want {
			t.Fatalf("weight %v, gradient %v, L1 %v: left out is %v", w, g, l1, left)
		}
	}
	tr := &blockTrainer{task: newBlocks(t, byBlocks(), data)}
	if to, left := tr.minimum(0, 3, 0, 0); to != 3 || left {
		t.Errorf("a weight that no example bears on went to %v", to)
	}
}

func TestWeightsThatWillStayZeroAreLeftOutAndLookedAtAgain(t *testing.T) {
	data := generated(t, nil)
	pushed := func(kkt float32, recheck int) (keys []int, q Quality) {
		c := byBlocks()
		c.L1, c.KKT, c.Recheck = 10, kkt, recheck
		task := newBlocks(t, c, data)
		s := served(t, task.Tables(), 1, 1)
		x, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		tr := x.(*blockTrainer)
		var b train.Batch[Turn]
		for epoch := 1; epoch <= 8; epoch++ {
			n := 0
			for at := range traintest.Steps(tr, 1, epoch) {
				tr.Load(&b, at)
				if _, err := tr.Step(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				n += len(tr.ks)
			}
			keys = append(keys, n)
		}
		return keys, evaluatedBy(t, task.model, []train.Env{{Workers: s.Workers(0)}}, data.Test)
	}
	all, want := pushed(0, 4)
	some, got := pushed(0.9, 4)
	for epoch, n := range some {
		switch {
		case all[epoch] != all[0]:
			t.Errorf("without the filter, pass %d pushes %d gradients, the first %d", epoch+1, all[epoch], all[0])
		case epoch%4 == 0 && n != all[epoch]:
			t.Errorf("pass %d looks at %d weights, want all %d", epoch+1, n, all[epoch])
		case epoch%4 != 0 && n > all[epoch]/2:
			t.Errorf("pass %d pushes %d gradients of %d, want less than half of them", epoch+1, n, all[epoch])
		}
	}
	// Steps are longer where fewer weights share an example.
	if got.LogLoss > want.LogLoss+1e-3 {
		t.Errorf("with the filter %v, without it %v, want no more loss with it", got, want)
	}
}

func TestEachPlaceIsInOneBlockOfAboutEqualSize(t *testing.T) {
	data := generated(t, nil)
	for _, n := range []int{1, 3, 16, 1 << 16} {
		c := byBlocks()
		c.Blocks = n
		task := newBlocks(t, c, data)
		b := task.bounds
		if b[0] != 0 || b[len(b)-1] != task.places() || len(b)-1 > n {
			t.Errorf("%d blocks wanted: bounds %v of %d places", n, b, task.places())
		}
		for i := range len(b) - 1 {
			if b[i] >= b[i+1] {
				t.Errorf("%d blocks wanted: block %d is empty", n, i)
			}
		}
		if n == 16 && len(b) < 12 {
			t.Errorf("16 blocks wanted, %d made", len(b)-1)
		}
		for _, workers := range []int{1, 3, 8} {
			owners := make([]int, task.places())
			for i := range workers {
				tr := &blockTrainer{task: task, part: train.Partition{Index: i, Count: workers}}
				for b := range task.blocks() {
					from, to := tr.share(b)
					for p := from; p < to; p++ {
						owners[p]++
					}
				}
			}
			for p, n := range owners {
				if n != 1 {
					t.Fatalf("%d workers: %d of them change place %d", workers, n, p)
				}
			}
		}
	}
}

// What a worker alone changes comes to it, and to no other.
func TestAWorkerAnnouncesTheRowsThatItChangesAndOnlyThose(t *testing.T) {
	data := generated(t, nil)
	task := newBlocks(t, byBlocks(), data)
	const workers, epochs = 3, 3
	s := served(t, task.Tables(), 1, workers)
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	for i, w := range s.Workers(0) {
		c := w.(*traintest.Worker).Counts
		// The gradients of its share once a pass at least, and a few weights that
		// it follows as well; the others' weights are pulled without.
		if least := epochs * task.places() / workers; c.Covered < least || c.Uncovered < 2*least {
			t.Errorf("worker %d pulled %d keys with an intent and %d without, want %d and %d at least", i, c.Covered, c.Uncovered, least, 2*least)
		}
	}
}

// Training goes on from weights that are there.
func TestASecondRunBeginsWhereTheFirstEnded(t *testing.T) {
	data := generated(t, nil)
	task := newBlocks(t, byBlocks(), data)
	s := served(t, task.Tables(), 1, 2)
	var last train.Loss
	for i := range 2 {
		r, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 5})
		if err != nil {
			t.Fatal(err)
		}
		if first := r.Losses[0].Sum; i > 0 && (first > last.Sum || first < 0.9*last.Sum) {
			t.Errorf("the second run begins at %v, the first one's last pass at %v", first, last.Sum)
		}
		last = r.Losses[4]
	}
}

func TestBlockSettingsOutOfRangeAreNamed(t *testing.T) {
	nan := float32(math.NaN())
	for field, change := range map[string]func(*BlockConfig){
		"Blocks": func(c *BlockConfig) { c.Blocks = -1 }, "Delay": func(c *BlockConfig) { c.Delay = -1 }, "KKT": func(c *BlockConfig) { c.KKT = nan },
		"Recheck": func(c *BlockConfig) { c.Recheck = 0 }, "L1": func(c *BlockConfig) { c.L1 = nan }, "L2": func(c *BlockConfig) { c.L2 = -1 },
	} {
		c := byBlocks()
		change(&c)
		if _, err := NewBlocks(c, generated(t, nil)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Config.%s ", field)) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// An orderly worker watches that a weight is told when its gradient was cleared,
// and not before: whoever sees it may push the next gradient.
type orderly struct {
	godwit.Worker
	t    *testing.T
	told *atomic.Int64
}

func (o orderly) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	m := o.Model()
	for _, k := range keys {
		i, row := m.Locate(k)
		if m.Table(i).Name != WeightTable {
			continue
		}
		for g := range m.Tables() {
			if m.Table(g).Name != GradientTable {
				continue
			}
			v := make([]float32, m.Table(g).Dim)
			if !o.PullIfLocal(m.Key(g, row), v) || slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
				o.t.Errorf("%v tells weight %d while its gradient is %v", o.ID(), row, v)
			}
			o.told.Add(1)
		}
	}
	return o.Worker.SetAsync(ctx, keys, vals)
}

func TestAWeightIsToldAfterItsGradientWasCleared(t *testing.T) {
	for _, blocks := range []int{0, manyBlocks} {
		toldInOrder(t, blocks)
	}
}

func toldInOrder(t *testing.T, blocks int) {
	c := byBlocks()
	c.Blocks = blocks
	task := newBlocks(t, c, generated(t, nil))
	told := new(atomic.Int64)
	var ws []godwit.Worker
	for _, w := range served(t, task.Tables(), 1, 1).Workers(0) {
		ws = append(ws, orderly{w, t, told})
	}
	if _, err := train.Run(t.Context(), train.Env{Workers: ws}, task, train.Options{Epochs: 2}); err != nil {
		t.Fatal(err)
	}
	if told.Load() == 0 {
		t.Error("no weight was told: the test is vacuous")
	}
}

// How features are numbered, and how many numbers there could be, changes neither
// blocks nor columns.
func TestFewFeaturesOfManyAreCutLikeAll(t *testing.T) {
	const far = 1 << 21
	few := generated(t, nil)
	spread := func(s *libsvm.Set) *libsvm.Set {
		wide := &libsvm.Set{Classes: s.Classes}
		for i := range s.Len() {
			y, fs, xs := s.Row(i)
			fs = slices.Clone(fs)
			for k := range fs {
				fs[k] *= far
			}
			wide.Append(y, fs, xs)
		}
		wide.Width = s.Width * far
		return wide
	}
	many := &libsvm.Splits{Train: spread(few.Train), Valid: spread(few.Valid), Test: spread(few.Test)}
	if !few.Train.Dense() || many.Train.Dense() {
		t.Fatal("the test is vacuous")
	}
	a, err := NewBlocks(byBlocks(), few)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBlocks(byBlocks(), many)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.bounds, b.bounds) || !slices.Equal(a.sharers(3), b.sharers(3)) {
		t.Errorf("blocks begin at %v and %v", a.bounds, b.bounds)
	}
	part := train.Partition{Index: 1, Count: 2}
	if x, y := newColumns(a.model, few.Train, part), newColumns(b.model, many.Train, part); !reflect.DeepEqual(x, y) {
		t.Error("columns differ")
	}
}

// One worker takes all weights of a small model to their common minimum; larger ones are cut.
func TestFewWeightsAreOneBlock(t *testing.T) {
	few := newBlocks(t, DefaultBlockConfig(), generated(t, func(s *libsvm.Spec) { s.Features = 300 }))
	if few.blocks() != 1 || few.gradientDim() != gradientDim+few.places() {
		t.Errorf("%d weights: %d blocks, rows of %d floats", few.places(), few.blocks(), few.gradientDim())
	}
	many := newBlocks(t, DefaultBlockConfig(), generated(t, func(s *libsvm.Spec) { s.Features, s.Exponent = 2000, 0 }))
	if many.places() <= maxWhole {
		t.Fatal("the test is vacuous")
	}
	if many.blocks() < manyBlocks/2 || many.gradientDim() != gradientDim {
		t.Errorf("%d weights: %d blocks, rows of %d floats", many.places(), many.blocks(), many.gradientDim())
	}
}
