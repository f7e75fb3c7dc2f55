package capi

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of random tests")

func open(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	b, err := json.Marshal(cfg)
	must(t, err)
	c, err := Open(b)
	must(t, err)
	_, err = c.Ready(-1)
	must(t, err)
	t.Cleanup(func() {
		if _, err := c.Close(-1); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func worker(t testing.TB, c *Cluster, i int) *Worker {
	t.Helper()
	w, err := c.Worker(i)
	must(t, err)
	return w
}

// done waits for what a call left, in slices.
func done(t testing.TB, w *Worker) func(op uint64, err error) {
	return func(op uint64, err error) {
		t.Helper()
		must(t, err)
		for over := op == 0; !over; {
			over, err = w.Wait(op, time.Millisecond)
			must(t, err)
		}
	}
}

var twoTables = []Table{
	{Name: "plain", Rows: 1000, Dim: 4},
	{Name: "rated", Rows: 500, Dim: 3, Rule: "ratedsgd", Init: Init{Kind: "uniform", A: 1, B: 1}},
}

// What is pushed is what others pull, on one node and on several, whichever table it is.
func TestPushesArriveWholeWhereverRowsAre(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := open(t, Config{Nodes: nodes, Tables: twoTables})
		for i := range nodes {
			w := worker(t, c, i)
			rows := []int64{5, 999, 0, 5}
			done(t, w)(w.Push(0, rows, slices.Repeat([]float32{1}, 16), 0, 1, 0, 0))
			done(t, w)(w.Push(1, []int64{1, 2, 1}, []float32{1, 1, 1, 2, 2, 2, 3, 3, 3}, 0.5, 1, Sum, 0))
		}
		w := worker(t, c, nodes-1)
		dst := make([]float32, 12)
		done(t, w)(w.Pull(0, []int64{5, 999, 1}, dst, 0, 0))
		n := float32(nodes)
		if want := []float32{2 * n, 2 * n, 2 * n, 2 * n, n, n, n, n, 0, 0, 0, 0}; !slices.Equal(dst, want) {
			t.Errorf("%d nodes: the plain rows are %v, want %v", nodes, dst, want)
		}
		dst = dst[:9]
		done(t, w)(w.Pull(1, []int64{1, 2, 3}, dst, 0, 0))
		a, b := 1-2*n, 1-n // 0.5·(1+3) and 0.5·2 from each node
		if want := []float32{a, a, a, b, b, b, 1, 1, 1}; !slices.Equal(dst, want) {
			t.Errorf("%d nodes: the rated rows are %v, want %v", nodes, dst, want)
		}
		dst = append(dst, 0, 0, 0)
		done(t, w)(w.Pull(1, []int64{2, 1, 2, 2}, dst, Once, 0))
		if want := []float32{b, b, b, a, a, a, b, b, b, b, b, b}; !slices.Equal(dst, want) {
			t.Errorf("%d nodes: the rated rows, read once, are %v, want %v", nodes, dst, want)
		}
		done(t, w)(w.Pull(0, []int64{5, 1, 5}, dst, Once, 0))
		if want := []float32{2 * n, 2 * n, 2 * n, 2 * n, 0, 0, 0, 0, 2 * n, 2 * n, 2 * n, 2 * n}; !slices.Equal(dst, want) {
			t.Errorf("%d nodes: the plain rows, read once, are %v, want %v", nodes, dst, want)
		}
		done(t, w)(w.Set(1, []int64{2}, []float32{7, 8, 9}, 0))
		done(t, w)(w.Pull(1, []int64{2}, dst[:3], 0, 0))
		if !slices.Equal(dst[:3], []float32{7, 8, 9}) {
			t.Errorf("%d nodes: a row that was set is %v", nodes, dst[:3])
		}
	}
}

// A call that would wait for room before it has asked for all is made by a goroutine, and
// its waits come back too.
func TestCallsThatAreLargerThanWhatMayBeUnderWay(t *testing.T) {
	const rows, dim = 6000, 1000 // 24 MB
	c := open(t, Config{Nodes: 2, Policy: "static", Tables: []Table{{Name: "t", Rows: rows, Dim: dim}}})
	w := worker(t, c, 0)
	keys := make([]int64, rows)
	for i := range keys {
		keys[i] = int64(i)
	}
	vals := slices.Repeat([]float32{3}, rows*dim)
	done(t, w)(w.Push(0, keys, vals, 0, 1, 0, 0))
	dst := make([]float32, rows*dim)
	done(t, w)(w.Pull(0, keys, dst, 0, 0))
	if i := slices.IndexFunc(dst, func(x float32) bool { return x != 3 }); i >= 0 {
		t.Errorf("float %d is %v", i, dst[i])
	}
}

// A call that waits comes back in time and leaves an operation, which a second thread cannot
// get in the way of, and which can be given up.
func TestABarrierThatNobodyElseReaches(t *testing.T) {
	c := open(t, Config{Workers: 2, Tables: twoTables})
	w := worker(t, c, 0)
	op, err := w.Barrier(0)
	must(t, err)
	if op == 0 {
		t.Fatal("one of two workers is through the barrier")
	}
	if over, err := w.Wait(op, time.Millisecond); over || err != nil {
		t.Errorf("over %v, %v", over, err)
	}
	if _, err := w.Pull(0, []int64{1}, make([]float32, 4), 0, 0); !errors.Is(err, ErrBusy) || CodeOf(err) != Busy || !strings.Contains(err.Error(), "barrier") {
		t.Errorf("a pull meanwhile: %v", err)
	}
	if err := w.Cancel(op); CodeOf(err) != Cancelled {
		t.Errorf("given up: %v", err)
	}
	if over, err := w.Wait(op, 0); !over || CodeOf(err) != Closed {
		t.Errorf("waited for after that: %v, %v", over, err)
	}
	done(t, w)(w.Pull(0, []int64{1}, make([]float32, 4), 0, 0))
	op, err = w.Barrier(0)
	must(t, err)
	done(t, worker(t, c, 1))(worker(t, c, 1).Barrier(0))
	done(t, w)(op, nil)
	if over, err := w.Wait(op, 0); !over || CodeOf(err) != Closed {
		t.Errorf("waited for when it was over: %v, %v", over, err)
	}
	other := worker(t, c, 1)
	var wg sync.WaitGroup
	for _, w := range []*Worker{w, other} {
		wg.Go(func() { done(t, w)(w.Barrier(0)) })
	}
	wg.Wait()
}

func TestMistakesAreToldByTheirCode(t *testing.T) {
	c := open(t, Config{Tables: twoTables, Samplers: []Sampler{{Name: "s"}}})
	w := worker(t, c, 0)
	four := make([]float32, 4)
	_, noTable := w.Pull(2, nil, nil, 0, 0)
	_, negative := w.Pull(0, []int64{-1}, four, 0, 0)
	_, high := w.Pull(1, []int64{500}, four[:3], 0, 0)
	_, short := w.Pull(0, []int64{1}, four[:3], 0, 0)
	_, flags := w.Push(0, []int64{1}, four, 0, 1, 4, 0)
	_, noRate := w.Push(0, []int64{1}, four, 1, 1, 0, 0)
	_, badRate := w.Push(1, []int64{1}, four[:3], float32(math.NaN()), 1, 0, 0)
	_, closed := ClusterOf(12345)
	_, noWorker := c.Worker(1)
	_, noJSON := Open([]byte("{"))
	_, unknown := Open([]byte(`{"wrkers":1}`))
	_, follows := Open([]byte(`{"tables":[{"name":"a","rows":1,"dim":1}]} {"seed":3}`))
	_, noUTF8 := Open([]byte("{\"tables\":[{\"name\":\"\xff\",\"rows\":1,\"dim\":1}]}"))
	_, noNumber := w.Save([]byte(`{"place":"folder"}`), nil, 0)
	_, misspelt := w.Save([]byte(`{"place":"folder","number":1,"kep":2}`), nil, 0)
	_, fewer := w.PrepareSample(0, -1, 0, 1)
	_, noRule := Open([]byte(`{"tables":[{"name":"a","rows":1,"dim":1,"rule":"sgd"}]}`))
	_, noInit := Open([]byte(`{"tables":[{"name":"a","rows":1,"dim":1,"init":{"kind":"uniform","a":2,"b":1}}]}`))
	_, noRows := Open([]byte(`{"tables":[{"name":"a","rows":0,"dim":1}]}`))
	for what, x := range map[string]struct {
		err  error
		code Code
		text string
	}{
		"no table": {noTable, Argument, "table 2"}, "negative": {negative, KeyRange, "row -1 at position 0"}, "high": {high, KeyRange, `"rated" has rows 0 … 499`},
		"short": {short, Length, "3 floats"}, "flags": {flags, Argument, "0x4"}, "no rate": {noRate, Argument, "rate 1"}, "bad rate": {badRate, Argument, "NaN"},
		"closed": {closed, Closed, "12345"}, "no worker": {noWorker, Argument, "worker 1"}, "no JSON": {noJSON, Argument, "JSON"}, "unknown": {unknown, Argument, "wrkers"},
		"follows": {follows, Argument, "follows"}, "no UTF-8": {noUTF8, Argument, `\xff`}, "no number": {noNumber, Argument, "number"}, "misspelt": {misspelt, Argument, "kep"},
		"fewer than no samples": {fewer, Argument, "-1 rows"},
		"no rule":               {noRule, Argument, "learning rate"}, "no init": {noInit, Argument, "uniform"}, "no rows": {noRows, Argument, "0 rows"},
	} {
		if x.err == nil || CodeOf(x.err) != x.code || !strings.Contains(x.err.Error(), x.text) {
			t.Errorf("%s: %v, code %d, want code %d and a text with %q", what, x.err, CodeOf(x.err), x.code, x.text)
		}
	}
	must(t, w.Intent(0, []int64{1}, 0, 1)) // the worker is free after all of them
	if _, err := w.Push(1, []int64{1}, four[:3], math.MaxFloat32, 1, 0, -1); err != nil {
		t.Errorf("the largest finite rate: %v", err)
	}
}

func TestErrorsOfTheCoreHaveCodes(t *testing.T) {
	for err, want := range map[error]Code{nil: OK, godwit.ErrPeerLost: Lost, godwit.ErrMemory: Memory, &godwit.OpError{Err: godwit.ErrClosed}: Closed, &godwit.OpError{Err: godwit.ErrFull}: Full, godwit.ErrSample: Argument, errors.New("x"): Other} {
		if got := CodeOf(err); got != want {
			t.Errorf("%v has code %d, want %d", err, got, want)
		}
	}
}

// Vectors that are not finite are left out, counted, and the only ones.
func TestVectorsThatAreNotFiniteAreNotPushed(t *testing.T) {
	c := open(t, Config{Tables: twoTables})
	w := worker(t, c, 0)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	rows := []int64{0, 1, 2, 3, 1}
	vals := []float32{1, 1, 1, nan, 0, 0, 3e38, -3e38, 3e38, 0, inf, 0, 1, 1, 1}
	done(t, w)(w.Push(1, rows, vals, 1, 1, Sum|Finite, 0))
	dst := make([]float32, 12)
	done(t, w)(w.Pull(1, []int64{0, 1, 2, 3}, dst, 0, 0))
	if want := []float32{0, 0, 0, 1, 1, 1, -3e38, 3e38, -3e38, 1, 1, 1}; !slices.Equal(dst, want) {
		t.Errorf("the rows are %v, want %v", dst, want)
	}
	if s, err := c.Stats(); err != nil || !strings.Contains(string(s), `"not_finite":2`) || !json.Valid(s) {
		t.Errorf("%s, %v", s, err)
	}
	done(t, w)(w.Push(0, []int64{9}, []float32{nan, 1, 1, 1}, 0, 1, Finite, 0))
	done(t, w)(w.Pull(0, []int64{9}, dst[:4], 0, 0))
	if dst[0] != 0 || dst[1] != 0 {
		t.Errorf("the row is %v", dst[:4])
	}
}

// Unique is compared with a map.
func TestUniqueFindsEachKeyOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 1))
	for range 200 {
		n := rng.IntN(300)
		keys, unique, inverse := make([]int64, n), make([]int64, n), make([]int64, n)
		span := rng.Int64N(400) + 1
		for i := range keys {
			keys[i] = rng.Int64N(span) << rng.IntN(2) * (1 - 2*rng.Int64N(2))
		}
		count, err := Unique(keys, unique, inverse)
		must(t, err)
		first := map[int64]int64{}
		for i, k := range keys {
			if _, ok := first[k]; !ok {
				first[k] = int64(len(first))
			}
			if inverse[i] != first[k] || unique[inverse[i]] != k {
				t.Fatalf("-seed %d: key %d at %d is at %d of %v", *seed, k, i, inverse[i], unique[:count])
			}
		}
		if count != len(first) {
			t.Fatalf("-seed %d: %d of %d keys are different", *seed, count, len(first))
		}
	}
	if _, err := Unique(make([]int64, 2), make([]int64, 1), make([]int64, 2)); CodeOf(err) != Length {
		t.Errorf("no room: %v", err)
	}
}

// Numbers of what was closed name nothing, and are not used again.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	cfg := []byte(`{"tables":[{"name":"a","rows":1,"dim":1}]}`)
	var seen []int64
	for range 2 {
		id, err := OpenNumber(cfg)
		must(t, err)
		c, err := ClusterOf(id)
		must(t, err)
		_, err = c.Ready(-1)
		must(t, err)
		n, err := WorkerNumber(id, 0)
		must(t, err)
		if again, err := WorkerNumber(id, 0); again != n || err != nil {
			t.Errorf("the worker is %d, then %d, %v", n, again, err)
		}
		w, err := WorkerOf(n)
		must(t, err)
		if over, err := CloseNumber(id, -1); !over || err != nil {
			t.Errorf("%v, %v", over, err)
		}
		if _, err := WorkerOf(n); CodeOf(err) != Closed {
			t.Errorf("the worker of a cluster that was closed: %v", err)
		}
		if _, err := w.Pull(0, []int64{0}, make([]float32, 1), 0, 0); CodeOf(err) != Closed {
			t.Errorf("a pull at it: %v", err)
		}
		if slices.Contains(seen, n) {
			t.Errorf("worker %d again", n)
		}
		seen = append(seen, n)
	}
}
