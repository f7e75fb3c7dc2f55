package wire

import (
	"encoding/hex"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

var update = flag.Bool("update", false, "rewrite the golden frames in testdata")

// goldenRecord is one record of the kind, with all its fields set.
func goldenRecord(k Kind) Record {
	full := Record{
		Kind: k, Key: 1000, Origin: 300, Op: 1 << 33, Index: 4, Hops: 2, Coming: true, Epoch: 129, Version: 1 << 20, Seq: 77,
		Vals:    []float32{1, -2.5, float32(math.Inf(1))},
		Holders: []Holder{{Node: 1, Seq: 2, Version: 3}, {Node: 400, Seq: 1 << 14, Version: 1 << 50}},
	}
	f := fieldsOf[k]
	r := Record{Kind: k}
	if f&fKey != 0 {
		r.Key = full.Key
	}
	if f&fOp != 0 {
		r.Op = full.Op
	}
	if f&fIndex != 0 {
		r.Index = full.Index
	}
	if f&fOrigin != 0 {
		r.Origin = full.Origin
	}
	if f&fRoute != 0 {
		r.Hops, r.Coming = full.Hops, full.Coming
	}
	if f&fEpoch != 0 {
		r.Epoch = full.Epoch
	}
	if f&fVersion != 0 {
		r.Version = full.Version
	}
	if f&fSeq != 0 {
		r.Seq = full.Seq
	}
	if f&fHolders != 0 {
		r.Holders = full.Holders
	}
	if f&fVals != 0 {
		r.Vals = full.Vals
	}
	r.Rough, r.Saved = f&fRough != 0, f&fSaved != 0
	return r
}

func golden(t *testing.T, name string, frame []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".hex")
	if *update {
		if err := os.WriteFile(path, []byte(hexLines(frame)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := hexLines(frame); got != string(text) {
		t.Errorf("%s: the bytes changed. If that is meant, raise Version and run with -update.\n got\n%swant\n%s", path, got, text)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// hexLines writes 16 bytes a line.
func hexLines(b []byte) string {
	var s strings.Builder
	for i, c := range b {
		switch {
		case i > 0 && i%16 == 0:
			s.WriteByte('\n')
		case i > 0:
			s.WriteByte(' ')
		}
		s.WriteString(hex.EncodeToString([]byte{c}))
	}
	s.WriteByte('\n')
	return s.String()
}

func TestGoldenFrames(t *testing.T) {
	frames := map[string][]Record{
		"empty": {},
		"example": { // the one in doc.go
			{Kind: Push, Key: 7, Op: 300, Origin: 2, Vals: []float32{1, 2}},
			{Kind: Push, Key: 8, Op: 300, Index: 1, Origin: 2, Vals: []float32{3, 4}},
		},
	}
	half := []float32{1, -0.5, 0, 2}
	for name, c := range map[string]Coding{"bf16": BF16, "fixed8": Fixed8, "fixed16": Fixed16, "sparse": Sparse, "fixed8-sparse": Fixed8 | Sparse} {
		step := float32(0)
		if c.fixed() {
			step = 0.5
		}
		frames[name] = []Record{
			{Kind: Push, Key: 7, Op: 300, Origin: 2, Vals: half, Coding: c, Step: step},
			{Kind: Push, Key: 9, Op: 300, Index: 2, Origin: 2, Vals: half, Coding: c, Step: step},
			{Kind: Push, Key: 8, Op: 300, Index: 1, Origin: 2, Vals: make([]float32, 16), Coding: c, Step: step},
		}
	}
	for k := Kind(1); k < kinds; k++ {
		frames[k.String()] = []Record{goldenRecord(k)}
		frames["mixed"] = append(frames["mixed"], goldenRecord(k))
	}
	var d Decoder
	for name, recs := range frames {
		frame := golden(t, name, encode(1, recs))
		got, err := decode(&d, frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, recs)
	}
}

// The frames of a list that comes three times, and of a question for it.
func TestGoldenLists(t *testing.T) {
	k := newTalk()
	keys := make([]godwit.Key, listRecords)
	for i := range keys {
		keys[i] = godwit.Key(3 * i * i)
	}
	for i, name := range []string{"list-first", "list-remember", "list-again"} {
		k.e.Reset(nil, 1)
		recs := call(Pull, uint64(i+1), keys)
		for j := range recs {
			k.e.Append(&recs[j])
		}
		got, err := decode(&k.d, golden(t, name, k.e.Frame()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, recs)
	}
	question := (&UnknownListError{k.sent.lists.newest.hash}).Question()
	answer, err := k.sent.Answer(golden(t, "list-question", question))
	if err != nil {
		t.Fatal(err)
	}
	if err := new(Known).Learn(golden(t, "list-answer", answer)); err != nil {
		t.Error(err)
	}
}

func TestGoldenHello(t *testing.T) {
	h := Hello{Run: "kge-7", From: 1, To: 2, Incarnation: 1 << 40, Fingerprint: "0123456789abcdef01234567", Features: SupportsCodings | SupportsLists}
	b, err := AppendHello(nil, h)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseHello(golden(t, "hello", b)); err != nil || got != h {
		t.Errorf("ParseHello = %+v, %v; want %+v", got, err, h)
	}
}

func TestGoldenNonceAndProof(t *testing.T) {
	var code [32]byte
	for i := range code {
		code[i] = byte(i)
	}
	if got, err := ParseNonce(golden(t, "nonce", AppendNonce(nil, code))); err != nil || got != code {
		t.Errorf("ParseNonce = %x, %v; want %x", got, err, code)
	}
	if got, err := ParseProof(golden(t, "proof", AppendProof(nil, code))); err != nil || got != code {
		t.Errorf("ParseProof = %x, %v; want %x", got, err, code)
	}
}
