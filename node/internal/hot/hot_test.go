package hot

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

func modelOf(t testing.TB, tables ...godwit.Table) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func model(t testing.TB, rows uint64) *godwit.Model {
	t.Helper()
	return modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 1})
}

// made is New of what tables may tell.
func made(t testing.TB, m *godwit.Model, rule placement.HotRule, nodes, workers int) *Set {
	t.Helper()
	h, err := New(m, rule, nodes, workers)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWhatIsNoFrequencyIsRefused(t *testing.T) {
	for _, x := range []float64{-1, math.NaN(), math.Inf(1), 1e308} {
		m := modelOf(t, godwit.Table{Name: "t", Rows: 10, Dim: 1, Hot: func(r uint64) float64 {
			if r == 7 {
				return x
			}
			return 1
		}})
		if _, err := New(m, placement.HotRule{Factor: 10}, 2, 1); err == nil || !strings.Contains(err.Error(), `table "t": Hot says that row 7`) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

func TestEnoughPullsFollowTheKeysInUse(t *testing.T) {
	for _, x := range []struct {
		rows        uint64
		used, nodes int // of each node
		keys        uint64
		pulls       int64
	}{
		{1000, 1, 2, 1000, 501},
		{manyKeys, 1, 2, manyKeys, manyKeys/2 + 1},
		{manyKeys + 1, 10, 2, 20, manyKeys/2 + 1},
		{1 << 46, 10, 4, 40, manyKeys/4 + 1},
		{1 << 46, 1 << 30, 4, 1 << 32, 1<<30 + 1},
		{1 << 24, 1 << 30, 4, 1 << 24, 1<<22 + 1},
		{1 << 46, 0, 4, 1, manyKeys/4 + 1},
	} {
		h := made(t, model(t, x.rows), placement.HotRule{}, x.nodes, 1)
		if keys, pulls := h.keysOf(uint64(x.used*x.nodes)), h.enoughPulls(x.used); keys != x.keys || pulls != x.pulls {
			t.Errorf("%d rows, %d of each of %d nodes in use: %d keys and %d pulls count, want %d and %d", x.rows, x.used, x.nodes, keys, pulls, x.keys, x.pulls)
		}
	}
}

// What cannot be asked about row by row is measured.
func TestATableWithTooManyRowsToTellIsMeasured(t *testing.T) {
	one := func(uint64) float64 { return 1 }
	m := modelOf(t, godwit.Table{Name: "a", Rows: 1 << 40, Dim: 1, Hot: one}, godwit.Table{Name: "b", Rows: 10, Dim: 1, Hot: one})
	if h := made(t, m, placement.HotRule{}, 2, 1); !h.Measures() {
		t.Error("a table with 2^40 rows is not measured")
	}
}

func TestReportsOfAccessesAreReadAsWritten(t *testing.T) {
	m := model(t, 100)
	h := made(t, m, placement.HotRule{Factor: 10}, 2, 3)
	for k, n := range map[godwit.Key]int{3: 30, 4: 4, 7: 20, 99: 300, 0: 46} {
		for i := range n {
			h.Accessed(i%3, []godwit.Key{k})
		}
	}
	got := map[godwit.Key]uint64{}
	total, used, err := readReport(h.report(77), m, func(k godwit.Key, c uint64) { got[k] = c })
	// The mean is 4; with two nodes, what is above 20 is told: 20 from each are 40 and
	// no more than ten times the mean.
	if err != nil || total != 400 || used != 77 || len(got) != 3 || got[0] != 46 || got[3] != 30 || got[99] != 300 {
		t.Errorf("read %d, %v, %v", total, got, err)
	}
}

func FuzzReadReport(f *testing.F) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{10, 4, 3, 5, 90, 1})
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		readReport(b, m, func(k godwit.Key, _ uint64) {
			if !m.Has(k) {
				t.Errorf("key %d is not of the model", k)
			}
		})
	})
}

// Memory that counts of pulls take is counted while they are made.
func TestCountsOfPullsTakeMemory(t *testing.T) {
	h := made(t, model(t, 100), placement.HotRule{Factor: 10}, 2, 3)
	for k := range godwit.Key(40) {
		before := h.Bytes()
		h.Accessed(int(k)%3, []godwit.Key{k})
		if n := h.Bytes() - before; n != pullBytes {
			t.Fatalf("the count of key %d takes %d bytes, want %d", k, n, pullBytes)
		}
	}
	h.measuring.Store(false)
	if n := h.Bytes(); n != 0 {
		t.Errorf("%d bytes when nothing is measured and no key is hot", n)
	}
}

// What tables tell is not measured, and the mean is that of those that tell.
func TestKeysThatTheTablesNameAreHotFromTheStart(t *testing.T) {
	freq := func(row uint64) float64 { return []float64{1, 5000, 1, 400, 0}[row%5] }
	m := modelOf(t,
		godwit.Table{Name: "unknown", Rows: 10, Dim: 1},
		godwit.Table{Name: "known", Rows: 5, Dim: 1, Hot: freq},
		godwit.Table{Name: "even", Rows: 1000, Dim: 1, Hot: func(uint64) float64 { return 1 }})
	h := made(t, m, placement.HotRule{Factor: 60}, 2, 1) // the mean is 6.4
	if want := []godwit.Key{11, 13}; h.Measures() || !slices.Equal(h.Keys(), want) || h.Len() != 2 || !h.Has(11) || h.Has(12) {
		t.Errorf("%v are hot, want %v; measures: %v", h.Keys(), want, h.Measures())
	}
	var none *Set
	if none.Measures() || none.Len() != 0 || none.Bytes() != 0 {
		t.Error("a policy that knows no hot keys has some")
	}
}

// A meeting is the other nodes, as Exchange shows them: it returns when all are there.
type meeting struct {
	mu   sync.Mutex
	left int
	all  [][]byte
	met  chan struct{}
}

func newMeeting(nodes int) *meeting {
	return &meeting{left: nodes, all: make([][]byte, nodes), met: make(chan struct{})}
}

func (m *meeting) as(node int) func(context.Context, string, []byte) ([][]byte, error) {
	return func(ctx context.Context, _ string, p []byte) ([][]byte, error) {
		m.mu.Lock()
		m.all[node] = p
		if m.left--; m.left == 0 {
			close(m.met)
		}
		m.mu.Unlock()
		select {
		case <-m.met:
			return m.all, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Nodes that counted different keys find the same ones hot, and each holds them.
func TestNodesAgreeOnTheHotKeys(t *testing.T) {
	const nodes = 3
	m := model(t, 1000)
	with := newMeeting(nodes)
	var held [nodes][]godwit.Key
	var finders sync.WaitGroup
	for i := range nodes {
		h := made(t, m, placement.HotRule{Factor: 100}, nodes, 1)
		for j := range godwit.Key(400) { // key 7 by all nodes, 8+i by one
			h.Accessed(0, []godwit.Key{7, 8 + godwit.Key(i), 100 + j})
		}
		finders.Go(func() {
			err := h.Find(host.New(host.Real()), Calls{Used: func() int { return 334 }, Exchange: with.as(i), Hold: func(_ context.Context, keys iter.Seq[godwit.Key]) error {
				held[i] = slices.Collect(keys)
				return nil
			}})
			if err != nil || h.Measures() || !h.Has(7) || h.Has(100) || !slices.Equal(h.Keys(), held[i]) {
				t.Errorf("node %d: %v; finds %v, holds %v", i, err, h.Keys(), held[i])
			}
		})
	}
	finders.Wait()
	for i := range held {
		if want := []godwit.Key{7, 8, 9, 10}; !slices.Equal(held[i], want) { // the mean is 3.6
			t.Errorf("node %d holds %v, want %v", i, held[i], want)
		}
	}
}

// A node that has told the others what it counted counts no more: it may wait for one that pulls little until the end of the run.
func TestNothingIsCountedWhileOthersAreWaitedFor(t *testing.T) {
	h := made(t, model(t, 100), placement.HotRule{Factor: 10}, 2, 1)
	for range 60 {
		h.Accessed(0, []godwit.Key{3})
	}
	exchange := func(_ context.Context, _ string, p []byte) ([][]byte, error) {
		h.Accessed(0, []godwit.Key{4, 5})
		if n := h.Bytes(); n != 0 || !h.Measures() {
			t.Errorf("counts take %d bytes while the node waits for others, want none; it measures: %v", n, h.Measures())
		}
		return [][]byte{p, p}, nil
	}
	err := h.Find(host.New(host.Real()), Calls{Used: func() int { return 50 }, Exchange: exchange, Hold: func(context.Context, iter.Seq[godwit.Key]) error { return nil }})
	if err != nil || h.Measures() || !slices.Equal(h.Keys(), []godwit.Key{3}) {
		t.Errorf("%v are hot (%v), want 3; it measures: %v", h.Keys(), err, h.Measures())
	}
}

// A node that ends before there is enough to count finds nothing, and what goes wrong
// between nodes is told.
func TestFindingEndsWithTheNodeOrWithAnError(t *testing.T) {
	m := model(t, 100)
	h, n := made(t, m, placement.HotRule{Factor: 10}, 2, 1), host.New(host.Real())
	n.Halt()
	if err := h.Find(n, Calls{}); err != nil || !h.Measures() {
		t.Errorf("at the node's end: %v", err)
	}

	for says, exchange := range map[string]func(context.Context, string, []byte) ([][]byte, error){
		"no exchange":         func(context.Context, string, []byte) ([][]byte, error) { return nil, errors.New("no exchange") },
		"node 1":              func(_ context.Context, _ string, p []byte) ([][]byte, error) { return [][]byte{p, {0x80}}, nil },
		"cannot be held back": func(_ context.Context, _ string, p []byte) ([][]byte, error) { return [][]byte{p, p}, nil },
	} {
		h, n := made(t, m, placement.HotRule{Factor: 10}, 2, 1), host.New(host.Real())
		for range 60 {
			h.Accessed(0, []godwit.Key{3})
		}
		hold := func(context.Context, iter.Seq[godwit.Key]) error { return errors.New("cannot be held back") }
		if err := h.Find(n, Calls{Used: func() int { return 50 }, Exchange: exchange, Hold: hold}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Of a large model, the keys in use at all nodes make the mean.
func TestTheMeanIsOfTheKeysInUseAtAllNodes(t *testing.T) {
	h := made(t, model(t, 1<<46), placement.HotRule{Factor: 7}, 2, 1)
	for i := range godwit.Key(150) { // key 7 60 times, nine others 10 times each
		k := 100 + i%9
		if i < 60 {
			k = 7
		}
		h.Accessed(0, []godwit.Key{k})
	}
	both := func(_ context.Context, _ string, p []byte) ([][]byte, error) { return [][]byte{p, p}, nil }
	hold := func(context.Context, iter.Seq[godwit.Key]) error { return nil }
	err := h.agree(t.Context(), Calls{Used: func() int { return 10 }, Exchange: both, Hold: hold})
	if want := []godwit.Key{7}; err != nil || !slices.Equal(h.Keys(), want) { // 300 pulls of 20 keys: more than 105 are hot
		t.Errorf("%v are hot (%v), want %v", h.Keys(), err, want)
	}
}
