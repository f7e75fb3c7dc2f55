package wire

import (
	"bytes"
	"fmt"
	"testing"
)

func FuzzDecoder(f *testing.F) {
	var all []Record
	for k := Kind(1); k < kinds; k++ {
		all = append(all, goldenRecord(k))
		f.Add(encode(1, all[len(all)-1:]), byte(0))
	}
	f.Add(encode(1, all), byte(1))
	for _, c := range codings {
		f.Add(encode(1, []Record{
			{Kind: Push, Key: 5, Op: 7, Vals: []float32{1, 0, -2}, Coding: c, Step: 0.5},
			{Kind: Push, Key: 6, Op: 7, Index: 1, Vals: []float32{0, 0, -2}, Coding: c, Step: 0.5},
			{Kind: Pull, Key: 5}, {Kind: Pull, Key: 6, Index: 1}, {Kind: Pull, Key: 7, Index: 2},
		}), byte(2))
	}
	f.Fuzz(func(t *testing.T, frame []byte, off byte) {
		frame = misplaced(frame, int(off%4))
		if len(frame) >= HeaderLen {
			putLen(frame) // otherwise nearly every input ends at the length
		}
		var d Decoder
		recs, err := decode(&d, frame)
		if err != nil {
			return
		}
		if len(recs) > 1<<16 { // from few bytes, where keys follow each other
			recs = recs[:1<<16]
		}
		var again Decoder
		got, err := decode(&again, encode(d.View(), recs))
		if err != nil {
			t.Fatalf("what was decoded does not decode when encoded again: %v", err)
		}
		same(t, got, recs)
	})
}

// FuzzOpening gives bytes to the three decoders of what opens a connection. Each
// byte of a frame that one of them takes means something: written again, the
// frame is the same.
func FuzzOpening(f *testing.F) {
	hello, _ := AppendHello(nil, Hello{Run: "run", From: 1, To: 2, Incarnation: 3, Fingerprint: "print"})
	f.Add(hello)
	f.Add(AppendNonce(nil, Nonce{1, 2, 3}))
	f.Add(AppendProof(nil, Proof{1, 2, 3}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		taken := 0
		check := func(what string, again []byte, err error) {
			if taken++; err != nil || !bytes.Equal(again, frame) {
				t.Fatalf("%x parses as %s, which is written as %x, %v", frame, what, again, err)
			}
		}
		if h, err := ParseHello(frame); err == nil {
			again, err := AppendHello(nil, h)
			check(fmt.Sprintf("%+v", h), again, err)
		}
		if n, err := ParseNonce(frame); err == nil {
			check(fmt.Sprintf("nonce %x", n), AppendNonce(nil, n), nil)
		}
		if p, err := ParseProof(frame); err == nil {
			check(fmt.Sprintf("proof %x", p), AppendProof(nil, p), nil)
		}
		if taken > 1 {
			t.Fatalf("%x is taken for %d things", frame, taken)
		}
	})
}
