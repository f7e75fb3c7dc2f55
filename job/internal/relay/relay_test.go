package relay

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/node"
)

// asks returns how a node asks a hub.
func asks(h *Hub, node int) Ask {
	return func(q []byte, deliver func([]byte)) func(context.Context) error {
		deliver(h.Answer(node, slices.Clone(q)))
		return func(ctx context.Context) error { return context.Cause(ctx) }
	}
}

// random are rows of two tables, by table and row.
func random(rng *rand.Rand, widths []int) map[[2]uint64][]float32 {
	all := map[[2]uint64][]float32{}
	for range 300 + rng.IntN(3000) {
		table := rng.IntN(len(widths))
		row := make([]float32, widths[table])
		for i := range row {
			row[i] = rng.Float32()
		}
		all[[2]uint64{uint64(table), rng.Uint64()}] = row
	}
	return all
}

// hand hands rows on, some at a time.
func hand(rng *rand.Rand, widths []int, all map[[2]uint64][]float32, sink func(int, []uint64, []float32) error) error {
	byTable := make([]rows, len(widths))
	for at, row := range all {
		r := &byTable[at[0]]
		r.rows, r.floats = append(r.rows, at[1]), append(r.floats, row...)
	}
	for table, r := range byTable {
		for len(r.rows) > 0 {
			n := 1 + rng.IntN(len(r.rows))
			if err := sink(table, r.rows[:n], r.floats[:n*widths[table]]); err != nil {
				return err
			}
			r.rows, r.floats = r.rows[n:], r.floats[n*widths[table]:]
		}
	}
	return nil
}

// gathered returns what sinks get; it may be called by several.
func gathered(widths []int) (map[[2]uint64][]float32, func(int, []uint64, []float32) error) {
	got, mu := map[[2]uint64][]float32{}, new(sync.Mutex)
	return got, func(table int, rs []uint64, floats []float32) error {
		mu.Lock()
		defer mu.Unlock()
		for i, r := range rs {
			got[[2]uint64{uint64(table), r}] = slices.Clone(floats[i*widths[table] : (i+1)*widths[table]])
		}
		return nil
	}
}

func TestRowsComeAsTheyWereSent(t *testing.T) {
	seed := seedtest.Of(t)
	widths := []int{3, 40_000} // of the second, six fit into a message
	h := NewHub(widths)
	want := random(rand.New(rand.NewPCG(seed, 0)), []int{3})
	for at, row := range random(rand.New(rand.NewPCG(seed, 1)), []int{1}) {
		if at[1]%200 == 0 {
			want[[2]uint64{1, at[1]}] = append(make([]float32, 39_999), row...)
		}
	}
	got, sink := gathered(widths)
	var nodes sync.WaitGroup
	for node := 1; node < 3; node++ {
		mine := map[[2]uint64][]float32{}
		for at, row := range want {
			if int(at[1]%2)+1 == node {
				mine[at] = row
			}
		}
		nodes.Go(func() { // it may begin before the hub does
			s := NewSender(t.Context(), asks(h, node), 7, widths)
			if err := s.Close(hand(rand.New(rand.NewPCG(seed, uint64(node))), widths, mine, s.Write)); err != nil {
				t.Error(err)
			}
		})
	}
	if err := h.Take(t.Context(), 7, 2, sink); err != nil {
		t.Fatal(err)
	}
	nodes.Wait()
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("seed %d: %d rows came, want %d, or others", seed, len(got), len(want))
	}
	back, sink := gathered(widths)
	nodes.Go(func() {
		if err := h.Give(t.Context(), 1, func(sink node.Sink) error {
			return hand(rand.New(rand.NewPCG(seed, 3)), widths, want, sink)
		}); err != nil {
			t.Error(err)
		}
	})
	if err := Receive(t.Context(), asks(h, 1), widths, sink); err != nil {
		t.Fatal(err)
	}
	nodes.Wait()
	if !maps.EqualFunc(back, want, slices.Equal) {
		t.Errorf("seed %d: %d rows came back, want %d, or others", seed, len(back), len(want))
	}
}

// What one side cannot do, the other hears of, and waits for no more.
func TestErrorsComeToTheOtherSide(t *testing.T) {
	h := NewHub([]int{2})
	full := errors.New("disk full")
	var bring sync.WaitGroup
	bring.Go(func() {
		s := NewSender(t.Context(), asks(h, 1), 1, []int{2})
		if err := s.Close(full); !errors.Is(err, full) {
			t.Error(err)
		}
	})
	if err := h.Take(t.Context(), 1, 1, nil); err == nil || !strings.Contains(err.Error(), "node 1: disk full") {
		t.Errorf("the hub hears %v", err)
	}
	bring.Wait()
	bring.Go(func() {
		s := NewSender(t.Context(), asks(h, 1), 2, []int{2})
		if err := s.Close(s.Write(0, []uint64{1}, []float32{1, 2})); err == nil || !strings.Contains(err.Error(), "no more rows of cut 2") {
			t.Errorf("the node hears %v", err)
		}
	})
	h.End(2)
	bring.Wait()
	bring.Go(func() { _ = h.Give(t.Context(), 1, func(node.Sink) error { return full }) })
	if err := Receive(t.Context(), asks(h, 1), []int{2}, nil); err == nil || err.Error() != full.Error() {
		t.Errorf("the node hears %v", err)
	}
	bring.Wait()
	h.End(3)
	s := NewSender(t.Context(), asks(h, 1), 3, []int{1 << 20})
	if err := s.Close(s.Write(0, []uint64{1}, make([]float32, 1<<20))); err == nil || !strings.Contains(err.Error(), "--checkpoint") {
		t.Errorf("a row that is too long: %v", err)
	}
}

func FuzzQuestions(f *testing.F) {
	widths := []int{2, 0, 5}
	r := rows{2, []uint64{7, 1}, make([]float32, 10)}
	f.Add(question(rowsCome, 3, r.append(nil)))
	f.Add(question(rowsNext, 0, nil))
	f.Add(question(roomNext, 3, nil))
	f.Add(question(rowsFail, 3, []byte("why")))
	f.Fuzz(func(t *testing.T, q []byte) {
		h := NewHub(widths)
		if a := h.Answer(1, q); len(a) == 0 {
			t.Error("an empty answer")
		}
		if len(q) < headBytes {
			return
		}
		if r, err := parseRows(q[headBytes:], widths); err == nil {
			if again, err := parseRows(r.append(nil), widths); err != nil || len(again.rows) != len(r.rows) || len(r.floats) != len(r.rows)*widths[r.table] {
				t.Errorf("%v, %v", again, err)
			}
		}
	})
}

// While the hub has no room, nodes ask for some by short questions: rows are sent twice at the most.
func TestRowsThatWaitAreNotSentAllTheTime(t *testing.T) {
	const nodes, messages = 6, 10
	widths := []int{10_000}
	h := NewHub(widths)
	var sent atomic.Int64
	var bring sync.WaitGroup
	for node := 1; node <= nodes; node++ {
		ask := asks(h, node)
		counted := func(q []byte, deliver func([]byte)) func(context.Context) error {
			if kind(q[1]) == rowsCome {
				sent.Add(1)
			}
			return ask(q, deliver)
		}
		bring.Go(func() {
			s := NewSender(t.Context(), counted, 1, widths)
			var err error
			for range messages {
				rs := make([]uint64, 7) // more than sendBytes
				if err = s.Write(0, rs, make([]float32, len(rs)*widths[0])); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(err); err != nil {
				t.Error(err)
			}
		})
	}
	came := 0
	if err := h.Take(t.Context(), 1, nodes, func(int, []uint64, []float32) error {
		came++
		time.Sleep(10 * time.Millisecond) // a slow disk
		return nil
	}); err != nil {
		t.Error(err)
	}
	bring.Wait()
	if came != nodes*messages || sent.Load() > 2*nodes*messages {
		t.Errorf("%d messages came, %d were sent, want %d and twice as many at the most", came, sent.Load(), nodes*messages)
	}
}

// Who sends rows to a hub that takes no more hears of it when rows of the next table come, and not at the end only.
func TestARefusedTableIsTold(t *testing.T) {
	h := NewHub([]int{1, 1})
	h.End(1)
	s := NewSender(t.Context(), asks(h, 1), 1, []int{1, 1})
	if err := s.Write(0, []uint64{1}, []float32{1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(1, []uint64{1}, []float32{1}); err == nil || !strings.Contains(err.Error(), "no more rows of cut 1") {
		t.Errorf("the node hears %v", err)
	}
	gone := errors.New("the node is gone")
	lost := func([]byte, func([]byte)) func(context.Context) error {
		return func(context.Context) error { return gone }
	}
	if err := Receive(t.Context(), lost, []int{1, 1}, nil); !errors.Is(err, gone) {
		t.Errorf("who cannot ask hears %v", err)
	}
}
