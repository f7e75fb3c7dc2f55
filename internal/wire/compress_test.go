package wire

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// deflate and inflate stand for any compression.
func deflate(dst, src []byte) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	w, err := flate.NewWriter(b, 6)
	if err == nil {
		_, err = w.Write(src)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

func inflate(dst, src []byte) error {
	r := flate.NewReader(bytes.NewReader(src))
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return errors.New("there is more")
	}
	return nil
}

func compressible() []byte {
	var e Encoder
	e.Reset(nil, 7)
	for k := range godwit.Key(100) {
		e.Append(&Record{Kind: Push, Key: k * k, Op: 5, Index: uint32(k), Origin: 1, Vals: []float32{1, 0, 0, float32(k)}})
	}
	return slices.Clone(e.Frame())
}

func TestACompressedFrameComesBackAsItWas(t *testing.T) {
	frame := compressible()
	for _, by := range []Features{SupportsS2, SupportsZstd} {
		packed, err := Compress([]byte("old"), frame, by, deflate)
		if err != nil {
			t.Fatal(err)
		}
		if len(packed) >= len(frame) || len(packed)%8 != 0 || CheckLen(packed) != nil || Compression(packed) != by || Compression(frame) != 0 {
			t.Errorf("%d bytes became %d, compression %d", len(frame), len(packed), Compression(packed))
		}
		got, err := Decompress(make([]byte, 3), packed, inflate)
		if err != nil || !bytes.Equal(got, frame) {
			t.Errorf("the frame did not come back: %v", err)
		}
		var d Decoder
		if err := d.Reset(packed); err == nil {
			t.Error("a decoder takes a compressed frame as it is")
		}
	}
	hello, _ := AppendHello(nil, Hello{})
	if hello[7] = flagS2; Compression(hello) != 0 {
		t.Error("a hello passes for a compressed frame")
	}
}

func TestACompressedFrameIsNotBelieved(t *testing.T) {
	packed, err := Compress(nil, compressible(), SupportsS2, deflate)
	if err != nil {
		t.Fatal(err)
	}
	never := func(dst, _ []byte) error {
		t.Errorf("%d bytes were to be unpacked", len(dst))
		return nil
	}
	for what, spoil := range map[string]func(b []byte) []byte{
		"another length":       func(b []byte) []byte { return append(b, 0) },
		"a size beyond frames": func(b []byte) []byte { binary.LittleEndian.PutUint32(b[20:], MaxFrame+8); return b },
		"an odd size":          func(b []byte) []byte { b[20]++; return b },
		"no size":              func(b []byte) []byte { clear(b[20:24]); return b },
		"too much padding": func(b []byte) []byte {
			b = b[:DataLen]
			b[7] = flagS2 | 7<<padShift
			putLen(b)
			return b
		},
		"padding that is not zero": func(b []byte) []byte { b[7] |= 7 << padShift; b[len(b)-7] = 1; return b },
		"another version":          func(b []byte) []byte { b[5]++; return b },
	} {
		if _, err := Decompress(nil, spoil(slices.Clone(packed)), never); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	b := slices.Clone(packed)
	b[20] += 8
	var format *FormatError
	if _, err := Decompress(nil, b, inflate); !errors.As(err, &format) {
		t.Errorf("a wrong size gave %v", err)
	}
}

// FuzzDecompress takes the body of a frame that is not compressed, behind a header
// that says it is: what a peer that packs as it likes can send. The length is
// that of the input.
func FuzzDecompress(f *testing.F) {
	keep := func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
	small := func(n godwit.Key) []byte {
		var e Encoder
		e.Reset(nil, 7)
		for k := range n {
			e.Append(&Record{Kind: Push, Key: k * k, Op: 5, Index: uint32(k), Origin: 1, Vals: []float32{1, 0, 0, float32(k)}})
		}
		return e.Frame()
	}
	for n, by := range []Features{SupportsS2, SupportsZstd, SupportsS2} {
		packed, err := Compress(nil, small(godwit.Key(1+3*n)), by, keep)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	unpack := func(dst, src []byte) error {
		if len(dst) != len(src) {
			return errors.New("another length")
		}
		copy(dst, src)
		return nil
	}
	const most = 1 << 12
	memory := make([]byte, 0, most)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = slices.Clone(b[:min(len(b), most)&^(frameAlign-1)])
		if len(b) < DataLen {
			return
		}
		putLen(b)
		if size := binary.LittleEndian.Uint32(b[HeaderLen+4:]); size > most && size <= MaxFrame {
			return // it would be allocated, and refused then
		}
		if Compression(b) == 0 {
			return
		}
		got, err := Decompress(memory, b, unpack)
		if err != nil {
			return
		}
		if CheckLen(got) != nil || Compression(got) != 0 {
			t.Fatalf("% x became % x", b, got)
		}
		readAll(got)
	})
}

// readAll reads the records of a frame up to the first error.
func readAll(frame []byte) {
	var d Decoder
	err := d.Reset(frame)
	for ok, r := true, (Record{}); ok && err == nil; {
		ok, err = d.Next(&r)
	}
}
