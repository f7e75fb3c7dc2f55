package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

var codings = []Coding{Raw, BF16, Fixed8, Fixed16, Sparse, Sparse | BF16, Sparse | Fixed8, Sparse | Fixed16}

// awkward are values that rounding and comparing treat in ways of their own.
var awkward = []float32{
	0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
	math.Float32frombits(0x7fc00000), math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345), // not numbers
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.Float32frombits(0x007fffff), // denormal
	math.MaxFloat32, -math.MaxFloat32, 1, -1,
}

// fits draws values that a coding can write.
func fits(r *rand.Rand, n int, c Coding, step float32) []float32 {
	vals := make([]float32, n)
	for i := range vals {
		switch {
		case r.IntN(2) == 0: // +0, which is what Sparse is for
		case c.base() == BF16:
			vals[i] = math.Float32frombits(r.Uint32() &^ 0xffff)
		case c.base() == Fixed8:
			vals[i] = float32(r.IntN(255)-127) * step
		case c.base() == Fixed16:
			vals[i] = float32(r.IntN(65535)-32767) * step
		default:
			vals[i] = math.Float32frombits(r.Uint32())
		}
		if vals[i] == 0 {
			vals[i] = 0 // no -0, from 0 times a step below 0
		}
	}
	return vals
}

func TestEveryCodingKeepsEveryBitOfWhatFits(t *testing.T) {
	r := newRand(t)
	var d Decoder
	for range 300 {
		var recs []Record
		for i := range 1 + r.IntN(20) {
			c := codings[r.IntN(len(codings))]
			rec := Record{Kind: Push, Key: godwit.Key(i), Index: uint32(i), Coding: c}
			if c.fixed() {
				rec.Step = math.Float32frombits(r.Uint32()&^(0xff<<23) | uint32(64+r.IntN(128))<<23) // of all but extreme sizes
			}
			rec.Vals = fits(r, 1+r.IntN(40), c, rec.Step)
			recs = append(recs, rec)
			if r.IntN(2) == 0 {
				rec.Key, rec.Index = rec.Key+1, rec.Index+1
				rec.Vals = fits(r, len(rec.Vals), c, rec.Step)
				recs = append(recs, rec)
			}
		}
		frame := encode(1, recs)
		for off := range 4 {
			got, err := decode(&d, misplaced(frame, off))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, recs) // the coding, too: none fell back
		}
	}
}

func TestWhatDoesNotFitIsWrittenAsItIs(t *testing.T) {
	var d Decoder
	fell := 0
	for _, c := range codings {
		for _, step := range []float32{0.5, 0, -1, math.SmallestNonzeroFloat32, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())} {
			for _, v := range append([]float32{0.1, 64, -63.5, 1 << 20}, awkward...) {
				for _, n := range []int{1, 2, ownStep} {
					want := Record{Kind: Delta, Key: 3, Coding: c, Step: step, Vals: make([]float32, n)}
					want.Vals[n-1] = v
					got, err := decode(&d, encode(0, []Record{want}))
					if err != nil {
						t.Fatal(err)
					}
					if used := got[0].Coding; used != c {
						fell++
						if used != Raw|c&Sparse {
							t.Errorf("coding %#x of %v with step %v fell back to %#x", c, v, step, used)
						}
					}
					want.Coding, want.Step = got[0].Coding, got[0].Step
					if !equal(&got[0], &want) {
						t.Errorf("coding %#x, step %v:\n got %+v\nwant %+v", c, step, got[0], want)
					}
				}
			}
		}
	}
	if fell == 0 {
		t.Error("everything fitted")
	}
}

func TestARunIsAsLongAsItsCodingsSay(t *testing.T) {
	const n, dim = 100, 64
	size := func(c Coding, step float32, zeros int) int {
		recs := make([]Record, n)
		for i := range recs {
			recs[i] = Record{Kind: Push, Key: godwit.Key(i), Index: uint32(i), Coding: c, Step: step * float32(1+i%2), Vals: make([]float32, dim)}
			for j := range dim - zeros {
				recs[i].Vals[j] = float32(1+j) * recs[i].Step
				if !c.fixed() {
					recs[i].Vals[j] = 1
				}
			}
		}
		return len(encode(0, recs)) - DataLen
	}
	for _, c := range []struct {
		coding Coding
		step   float32
		zeros  int
		want   int // bytes a record
	}{
		{Raw, 0, 0, 4 * dim},
		{BF16, 0, 0, 2 * dim},
		{Fixed16, 0.5, 0, 2*dim + 4},
		{Fixed8, 0.5, 0, dim + 4},
		{Sparse, 0, dim, dim / 8},
		{Sparse, 0, dim - 1, dim/8 + 4},
		{Sparse | Fixed8, 0.5, dim / 2, dim/8 + dim/2 + 4},
	} {
		if got := size(c.coding, c.step, c.zeros); got < n*c.want || got > n*c.want+24 {
			t.Errorf("coding %#x with %d of %d zeros: %d bytes, want %d and a head", c.coding, c.zeros, dim, got, n*c.want)
		}
	}
}

// Codings that a decoder undoes take memory beyond the frame's: it is bounded.
func TestAFrameDoesNotGrowOverTheLongestWhenRead(t *testing.T) {
	const dim = 1 << 20
	var e Encoder
	e.Reset(nil, 0)
	r := Record{Kind: Push, Coding: Sparse, Vals: make([]float32, dim)}
	const fit = MaxFrame / 4 / dim
	for range fit + 1 {
		e.Append(&r)
	}
	var d Decoder
	if err := d.Reset(e.Frame()); err != nil {
		t.Fatal(err)
	}
	var got Record
	for i := range fit {
		if ok, err := d.Next(&got); !ok {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	if ok, err := d.Next(&got); ok || err == nil {
		t.Errorf("a frame of %d floats was read", (fit+1)*dim)
	}
}

func TestReadValuesStayUntilTheNextFrame(t *testing.T) {
	var recs []Record
	for i := range 200 { // the memory for them grows meanwhile
		recs = append(recs, Record{Kind: Push, Key: godwit.Key(i), Index: uint32(i), Coding: BF16, Vals: []float32{float32(i), float32(-i)}})
	}
	var d Decoder
	for range 2 {
		got, err := decode(&d, encode(0, recs))
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, recs)
	}
}

func FuzzCoding(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0}, uint8(1), uint32(0x3f000000))
	f.Add([]byte{0, 0, 0, 0x80}, uint8(2), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, c uint8, step uint32) {
		rec := Record{Kind: Push, Coding: codings[int(c)%len(codings)]}
		if rec.Coding.fixed() {
			rec.Step = math.Float32frombits(step)
		}
		for ; len(b) >= 4; b = b[4:] {
			rec.Vals = append(rec.Vals, math.Float32frombits(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
		}
		var d Decoder
		got, err := decode(&d, encode(0, []Record{rec, rec}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			rec.Coding, rec.Step = got[i].Coding, got[i].Step
		}
		same(t, got, []Record{rec, rec})
	})
}

func BenchmarkCoding(b *testing.B) {
	for _, c := range codings[1:] {
		recs := benchFrame()
		r := rand.New(rand.NewPCG(1, 1))
		for i := range recs {
			recs[i].Coding, recs[i].Step = c, 0
			if c.fixed() {
				recs[i].Step = 0.25
			}
			recs[i].Vals = fits(r, benchFloats, c, 0.25)
		}
		b.Run(fmt.Sprintf("encode/%#02x", uint8(c)), func(b *testing.B) { benchEncode(b, recs) })
		b.Run(fmt.Sprintf("decode/%#02x", uint8(c)), func(b *testing.B) { benchDecode(b, recs) })
	}
}

func TestWhoTakesNoCodingsGetsPlainValues(t *testing.T) {
	e := Encoder{Plain: true}
	e.Reset(nil, 0)
	e.Append(&Record{Kind: Push, Coding: Fixed8 | Sparse, Step: 1, Vals: []float32{1, 0}})
	var d Decoder
	got, err := decode(&d, e.Frame())
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, []Record{{Kind: Push, Vals: []float32{1, 0}}})
}

// However a frame's coded values are divided, the memory for them is less than that of two frames.
func TestCodedValuesTakeBoundedMemory(t *testing.T) {
	const most = MaxFrame / 4
	for _, sizes := range [][]int{{most - 1, 1}, {1, most - 1}, {most/2 - 1, 2, most/2 - 1}, {most / 3, most / 3, most / 3}, {most}} {
		var d Decoder
		floats := 0
		for _, n := range sizes {
			before := cap(d.scratch)
			if d.room(n); cap(d.scratch) != before {
				floats += cap(d.scratch)
			}
		}
		if floats >= 2*most {
			t.Errorf("vectors of %v floats take memory for %d", sizes, floats)
		}
	}
}
