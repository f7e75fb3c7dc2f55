package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// Against a map, with keys at random, some of them accessed very often: of models of many keys and of few, of which all are traced or some.
func TestATallyIsAMap(t *testing.T) {
	for rows, random := range map[uint64]uint64{1 << 40: 1 << 40, fewKeys: fewKeys, fewKeys - 1: fewKeys / 2} {
		t.Run(fmt.Sprintf("%d of %d", random, rows), func(t *testing.T) { tallies(t, rows, random) })
	}
}

func tallies(t *testing.T, rows, random uint64) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keys, err := trace.ParseKeys(fmt.Sprintf("random=%d", random), m)
	if err != nil {
		t.Fatal(err)
	}
	to, err := trace.Create(trace.Config{Dir: dir, Header: trace.Header{Nodes: 1, Tables: trace.TablesOf(m)}, Keys: keys, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	now := int64(1)
	tally := NewTracer(to, 0, func() int64 { return now }, func() godwit.Clock { return 0 }).Tally()
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 1))
	type n struct{ all, missed uint32 }
	want, got := map[godwit.Key]n{}, map[godwit.Key]n{}
	for window := range 3 {
		for range 4000 << window {
			k := godwit.Key(rng.Uint64() >> (24 + rng.IntN(40)) % rows)
			x := want[k]
			if rng.IntN(1000) == 0 { // more often than 16 bits can count
				n := 1 + rng.IntN(1<<17)
				tally.Accessed(slices.Repeat([]godwit.Key{k}, n))
				x.all += uint32(n)
			}
			if rng.IntN(3) == 0 {
				tally.Missed([]godwit.Key{0, k}, []int{1, 7})
				x.missed++
				if rng.IntN(500) == 0 {
					n := 1 + rng.IntN(1<<17)
					tally.Missed([]godwit.Key{k}, make([]int, 2*n))
					x.missed += uint32(n)
				}
			}
			tally.Accessed([]godwit.Key{k})
			x.all++
			if want[k] = x; !keys.Has(k) {
				delete(want, k)
			}
		}
		now += 3600e9
		tally.Advanced(1, false)
	}
	roomtest.Must(t, to.Close())
	tr, err := trace.Open(dir)
	roomtest.Must(t, err)
	roomtest.Must(t, tr.Events(0, func(e trace.Event) bool {
		x := got[e.Key]
		switch e.Kind {
		case trace.Accessed:
			x.all += e.N
		case trace.Missed:
			x.missed += e.N
		}
		got[e.Key] = x
		return true
	}))
	for k, x := range want {
		if got[k] != x {
			t.Fatalf("seed %d: key %d has %v, want %v", *roomtest.Seed, k, got[k], x)
		}
	}
	if len(got) != len(want) || len(want) < 2000 {
		t.Errorf("seed %d: %d keys were counted, want %d, of thousands", *roomtest.Seed, len(got), len(want))
	}
}
