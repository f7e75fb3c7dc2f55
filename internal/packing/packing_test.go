package packing

import (
	"bytes"
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

// packer compresses by S2.
func packer() (p Packer) {
	p.Set(filter.Compress{Method: filter.S2}, wire.SupportsS2)
	return p
}

func zero(int) float32 { return 0 }

func TestFramesThatDoNotCompressAreTriedLessAndLess(t *testing.T) {
	p := packer()
	rng := rand.New(rand.NewPCG(*seed, 0))
	noise := framed(10_000, func(int) float32 { return rng.Float32() })
	zeros := framed(10_000, zero)
	if b := p.Pack(zeros); b == nil || len(b) > len(zeros)/10 {
		t.Fatalf("zeros: %d bytes became %d", len(zeros), len(b))
	}
	for range 2 {
		for _, pause := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
			if p.Pack(noise) != nil {
				t.Fatal("noise was compressed")
			}
			for i := range pause {
				if p.Pack(zeros) != nil {
					t.Fatalf("after noise, frame %d of %d that are let pass was compressed", i+1, pause)
				}
			}
		}
		for range 10 {
			if p.Pack(zeros) == nil {
				t.Fatal("a frame that pays is not compressed")
			}
		}
	}
}

// Once a frame did not pay, a sample from the middle of the next long one that is tried decides whether the whole is.
func TestASampleOfAFrameIsTriedFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 1))
	noise := framed(10_000, func(int) float32 { return rng.Float32() })
	// Frames of which so many records in the middle are noise.
	middle := func(all, noisy int) []byte {
		return framed(all, func(i int) float32 {
			if 2*i >= all-noisy && 2*i < all+noisy {
				return rng.Float32()
			}
			return 0
		})
	}
	for _, c := range []struct {
		name          string
		frame         []byte
		first, paused bool // is compressed, as the first frame and after one that did not pay
	}{
		{"a long frame with noise in the middle", middle(10_000, 2000), true, false},
		{"a short frame with noise in the middle", middle(1000, 300), true, true},
		{"a long frame of zeros", middle(10_000, 0), true, true},
	} {
		p := packer()
		if got := p.Pack(c.frame) != nil; got != c.first {
			t.Errorf("-seed %d: %s of %d bytes: compressed as the first one: %v", *seed, c.name, len(c.frame), got)
		}
		p = packer()
		p.Pack(noise)
		p.Pack(noise) // is let pass
		if got := p.Pack(c.frame) != nil; got != c.paused {
			t.Errorf("-seed %d: %s of %d bytes: compressed after one that did not pay: %v", *seed, c.name, len(c.frame), got)
		}
		if next := p.Pack(framed(10_000, zero)) != nil; next != c.paused {
			t.Errorf("-seed %d: %s: the next frame is tried: %v", *seed, c.name, next)
		}
	}
}

func TestFramesOfAFewBytesAreSentAsTheyAre(t *testing.T) {
	for n := 1; ; n++ {
		p := packer()
		f := framed(n, zero)
		if got, want := p.Pack(f) != nil, len(f) >= leastPack; got != want {
			t.Fatalf("%d bytes: compressed: %v, want %v", len(f), got, want)
		}
		if len(f) > 2*leastPack {
			break
		}
	}
}

// Nothing is compressed for a peer that does not take it.
func TestPeersGetWhatTheyTake(t *testing.T) {
	zeros := framed(1000, zero)
	for _, c := range []struct {
		by    filter.Compress
		takes wire.Features
		want  wire.Features // by which a frame is compressed; 0: it is not
	}{
		{filter.Compress{Method: filter.S2}, wire.SupportsS2 | wire.SupportsZstd, wire.SupportsS2},
		{filter.Compress{Method: filter.Zstd}, wire.SupportsS2 | wire.SupportsZstd, wire.SupportsZstd},
		{filter.Compress{Method: filter.Zstd}, wire.SupportsS2, 0},
		{filter.Compress{Method: filter.S2}, 0, 0},
		{filter.Compress{}, wire.SupportsS2 | wire.SupportsZstd, 0},
	} {
		var p Packer
		p.Set(c.by, c.takes)
		b := p.Pack(zeros)
		if c.want == 0 {
			if b != nil {
				t.Errorf("%+v for a peer that takes %x: compressed", c.by, c.takes)
			}
			continue
		}
		if wire.Compression(b) != c.want {
			t.Errorf("%+v for a peer that takes %x: compressed by %x", c.by, c.takes, wire.Compression(b))
		}
		if f, err := Unpacked(nil, b); err != nil || !bytes.Equal(f, zeros) {
			t.Errorf("%+v: another frame came out: %v", c.by, err)
		}
	}
	if f, err := Unpacked(nil, zeros); err != nil || &f[0] != &zeros[0] {
		t.Errorf("a frame that is not compressed: %v", err)
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
