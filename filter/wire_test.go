package filter

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// written returns the bytes of the values of a batch's vectors in a frame, after
// seeing that they are read as they were written.
func written(t *testing.T, b *godwit.FilterBatch) int {
	t.Helper()
	var e wire.Encoder
	e.Reset(nil, 1)
	var sent []int
	for i, k := range b.Keys {
		if b.Sent(i) {
			e.Append(&wire.Record{Kind: wire.Push, Key: k, Op: 1, Index: uint32(i), Vals: b.Vec(i), Coding: wire.Coding(b.Encoding.Coding), Step: b.Encoding.Step})
			sent = append(sent, i)
		}
	}
	frame := e.Frame()
	var d wire.Decoder
	if err := d.Reset(frame); err != nil {
		t.Fatal(err)
	}
	var r wire.Record
	for _, i := range sent {
		if ok, err := d.Next(&r); !ok || err != nil {
			t.Fatalf("record of position %d: %v, %v", i, ok, err)
		}
		if !slices.EqualFunc(r.Vals, b.Vec(i), same) {
			t.Fatalf("position %d is read as %v, it was %v", i, r.Vals, b.Vec(i))
		}
	}
	return int(binary.LittleEndian.Uint32(frame[wire.HeaderLen:]))
}

// Codings mean the same in frames as they do for filters.
func TestFiltersHaveVectorsWrittenInTheBytesThatTheySay(t *testing.T) {
	vals := normal(64*32, 1, 0)
	for i := range vals {
		if i%3 == 0 {
			vals[i] = 0
		}
	}
	for _, fs := range [][]godwit.Filter{{}, {FixedPoint(1)}, {FixedPoint(2)}, {BF16{}}, {Sparse{}}, {FixedPoint(1), Sparse{}}, {BF16{}, Sparse{}}} {
		b := batch(32, 0, vals)
		for _, f := range fs {
			f.Filter(b)
		}
		want := 0
		for i := range b.Keys {
			want += b.Encoding.Bytes(b.Vec(i))
		}
		steps := 0
		if b.Encoding.Coding&^godwit.Sparse >= godwit.Fixed8 {
			steps = 4 * len(b.Keys) // with the values, for so long ones
		}
		if got := written(t, b); got < want || got > want+steps {
			t.Errorf("%v: the values take %d bytes, want %d and %d for steps at most", fs, got, want, steps)
		}
	}
}

func FuzzWhatFiltersMakeIsReadAsItWas(f *testing.F) {
	f.Add([]byte{1, 0xc0, 0x7f, 0xff, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0x80, 0x3f}, uint8(0), uint8(2))
	f.Add([]byte{}, uint8(3), uint8(1))
	all := []godwit.Filter{FixedPoint(1), FixedPoint(2), BF16{}, Sparse{}, Fixed{Bytes: 1, Forget: true}, Significant{Threshold: 1}, Skip{0.5}, Noise{1}}
	f.Fuzz(func(t *testing.T, raw []byte, which, dim uint8) {
		n := int(dim%40) + 1
		vals := make([]float32, len(raw)/4/n*n)
		for i := range vals {
			vals[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		before := slices.Clone(vals)
		b := batch(n, uint64(which), vals)
		for i, x := range all {
			if which>>i&1 != 0 {
				x.Filter(b)
			}
		}
		if !slices.EqualFunc(vals, before, same) {
			t.Fatal("filters changed the input")
		}
		written(t, b)
	})
}
