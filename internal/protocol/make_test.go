package protocol

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/placement"
)

// Of keys that are here, away, or given twice, Make makes the rows that are
// missing, as one access after the other would.
func TestMakeMakesTheRowsThatAccessesWould(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 50, Dim: 3, Init: godwit.Uniform{Hi: 1}}, godwit.Table{Name: "b", Rows: 50, Dim: 2, Init: godwit.Normal{Std: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var shards []*Shard
	for range 2 {
		cfg := &Config{Model: m, Seed: 5, Policy: placement.Adaptive, Homes: directory.NewHomes(100, []godwit.NodeID{0})}
		if err := cfg.Prepare(); err != nil {
			t.Fatal(err)
		}
		s, err := NewShard(cfg, store.HeapAlloc)
		if err != nil {
			t.Fatal(err)
		}
		s.Push(9, []float32{1, 2, 3})
		s.dir.SetAway(70, directory.Owner{Node: 1})
		shards = append(shards, s)
	}
	s, single := shards[0], shards[1]
	keys := []godwit.Key{3, 9, 70, 60, 3, 99}
	s.cfg.InUse(keys)
	rows := make([]*store.Header, len(keys))
	if made := s.Make(keys, rows); made != 3 {
		t.Errorf("%d rows were made, want 3", made)
	}
	for i, h := range rows {
		if fresh := i == 0 || i == 3 || i == 5; fresh != (h != nil) || fresh && h.Key != keys[i] {
			t.Errorf("of key %d at position %d, the row that was made is %v", keys[i], i, h)
		}
	}
	got, want := make([]float32, 3), make([]float32, 3)
	for _, k := range keys {
		p, q := s.Pull(k, got[:m.Dim(k)]), single.Pull(k, want[:m.Dim(k)])
		if p != q || !slices.Equal(got, want) {
			t.Errorf("key %d reads %v at %v, made alone %v at %v", k, got, p, want, q)
		}
	}
	if _, owned, _ := s.Len(); owned != 4 {
		t.Errorf("%d keys are owned, want 4", owned)
	}
}

// What the store of a shard says of rows that hardly fit comes to who configured the shard.
func TestAShardTellsWhenRowsHardlyFit(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 50, Dim: 3}, godwit.Table{Name: "b", Rows: 50, Dim: 2}, godwit.Table{Name: "c", Rows: 1, Dim: 3})
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	cfg := &Config{Model: m, Policy: placement.Adaptive, Homes: directory.NewHomes(101, []godwit.NodeID{0}), RowsFull: func(rows, floats int) { told = append(told, rows, floats) }}
	if err := cfg.Prepare(); err != nil {
		t.Fatal(err)
	}
	s, err := NewShard(cfg, store.HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	s.st.Full(1000, 3)
	if !slices.Equal(told, []int{1000, 3}) || cfg.RowLengths() != 2 {
		t.Errorf("it told %v; rows have %d lengths, want 2", told, cfg.RowLengths())
	}
}

// A header has room for the numbers of so many sides, and no more.
func TestAShardTellsWhenSidesHardlyFit(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 100, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	cfg := &Config{Model: m, Policy: placement.Adaptive, Homes: directory.NewHomes(101, []godwit.NodeID{0}), SidesFull: func(keys int) { told = keys }}
	if err := cfg.Prepare(); err != nil {
		t.Fatal(err)
	}
	s, err := NewShard(cfg, store.HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	var h [3]store.Header
	had := func(n uint32) {
		n -= n % poolChunk
		s.sides.chunks, s.sides.made = make([]*[poolChunk]side, n/poolChunk), n
	}
	had(sidesFull - 1)
	for told == 0 && s.sides.made < sidesFull {
		h[0].Meta = 0
		s.sideOf(&h[0])
	}
	if told != sidesFull || s.sides.made != sidesFull {
		t.Errorf("after %d sides it told of %d, want both to be %d", s.sides.made, told, sidesFull)
	}
	had(mostSides - 1)
	for s.sides.made < mostSides {
		h[1].Meta = 0
		s.sideOf(&h[1])
	}
	if !hasSide(&h[1]) || h[1].Meta>>sideShift != mostSides {
		t.Errorf("the last side has the number %d, want %d", h[1].Meta>>sideShift, mostSides)
	}
	defer func() {
		if recover() == nil {
			t.Errorf("one more has the number %d", h[2].Meta>>sideShift)
		}
	}()
	s.sideOf(&h[2])
}
