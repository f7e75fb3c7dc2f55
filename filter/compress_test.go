package filter

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
)

var methods = []Compress{{S2}, {Zstd}}

func TestCompressedBytesComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(*seedFlag, 0))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for _, c := range methods {
		for _, src := range [][]byte{{}, {1}, make([]byte, 1<<20), noise, bytes.Repeat([]byte("godwit"), 1000)} {
			packed, err := c.Pack([]byte("before"), src)
			if err != nil || !bytes.HasPrefix(packed, []byte("before")) {
				t.Fatalf("%s: %v", c.Name(), err)
			}
			packed = packed[len("before"):]
			got := make([]byte, len(src))
			if err := c.Unpack(got, packed); err != nil || !bytes.Equal(got, src) {
				t.Errorf("%s: %d bytes did not come back from %d: %v", c.Name(), len(src), len(packed), err)
			}
			if len(src) > 1000 && src[0] == src[6] && len(packed) > len(src)/10 {
				t.Errorf("%s made %d bytes of %d", c.Name(), len(packed), len(src))
			}
			for _, n := range []int{0, len(src) - 1, len(src) + 1, len(src) / 2} {
				if n >= 0 && n != len(src) && c.Unpack(make([]byte, n), packed) == nil {
					t.Errorf("%s: %d compressed bytes pass for %d", c.Name(), len(src), n)
				}
			}
		}
	}
}

// A megabyte of zeros takes some ten bytes: whoever believed them would take
// any memory for a few.
func TestABombTakesNoMoreThanItWasGiven(t *testing.T) {
	for _, c := range methods {
		packed, err := c.Pack(nil, make([]byte, 64<<20))
		if err != nil {
			t.Fatal(err)
		}
		unpack := func() {
			if c.Unpack(make([]byte, 1000), packed) == nil {
				t.Error("a bomb passed")
			}
		}
		unpack() // which makes the decoder
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		unpack()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s allocated %d bytes to decompress into 1000", c.Name(), got)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for i, c := range methods {
		packed, err := c.Pack(nil, bytes.Repeat([]byte{1, 2, 3}, 100))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, uint16(300), i == 0)
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint16, fast bool) {
		c := methods[1]
		if fast {
			c = methods[0]
		}
		dst := make([]byte, n)
		if c.Unpack(dst, src) != nil {
			return
		}
		packed, err := c.Pack(nil, dst)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		if err := c.Unpack(got, packed); err != nil || !bytes.Equal(got, dst) {
			t.Fatalf("%s: %v", c.Name(), err)
		}
	})
}
