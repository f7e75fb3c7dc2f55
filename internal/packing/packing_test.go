package packing

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the tests")

// framed makes a frame of pushes of values.
func framed(n int, value func(i int) float32) []byte {
	var e wire.Encoder
	e.Reset(nil, 1)
	for i := range n {
		e.Append(&wire.Record{Kind: wire.Push, Key: godwit.Key(i), Index: uint32(i), Vals: []float32{value(i), value(i), value(i), value(i)}})
	}
	return e.Frame()
}

func TestFramesThatDoNotCompressAreTriedLessAndLess(t *testing.T) {
	var p Packer
	p.Set(filter.Compress{Method: filter.S2}, wire.SupportsS2)
	rng := rand.New(rand.NewPCG(*seed, 0))
	noise := framed(10_000, func(int) float32 { return rng.Float32() })
	zeros := framed(10_000, func(int) float32 { return 0 })
	if b := p.Pack(zeros); b == nil || len(b) > len(zeros)/10 {
		t.Fatalf("zeros: %d bytes became %d", len(zeros), len(b))
	}
	for range 1000 {
		if p.Pack(noise) != nil {
			t.Fatal("noise was compressed")
		}
	}
	if p.pause != maxPaused {
		t.Errorf("after noise, %d frames are let pass", p.pause)
	}
	passed := 0
	for p.Pack(zeros) == nil {
		if passed++; passed > maxPaused {
			t.Fatal("zeros are not tried again")
		}
	}
	for range 10 {
		if p.Pack(zeros) == nil {
			t.Fatal("after a frame that paid, the next is not compressed")
		}
	}
	if p.Pack(framed(1, func(int) float32 { return 0 })) != nil {
		t.Error("a few bytes were compressed")
	}
}

func TestTablesMayNotDifferInCompression(t *testing.T) {
	m, err := godwit.NewModel(
		godwit.Table{Name: "a", Rows: 1, Dim: 1, Filters: []godwit.Filter{filter.Compress{Method: filter.S2}}},
		godwit.Table{Name: "b", Rows: 1, Dim: 1, Filters: []godwit.Filter{filter.Compress{Method: filter.Zstd}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Of(m); err == nil || !strings.Contains(err.Error(), `s2, table "b" by zstd`) {
		t.Errorf("the error is %v", err)
	}
}
