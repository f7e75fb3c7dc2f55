package ledger

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

var messages = []Message{
	{Kind: Barrier, Name: "epoch 3", Gen: 1},
	{Kind: Barrier, Name: "line\nbreak \x00 ü", Gen: 1 << 60},
	{Kind: Exchange, Name: "hosts", Gen: 2, Payload: []byte("a\nb\x00\xff")},
	{Kind: Exchange, Name: strings.Repeat("n", coord.MaxName), Gen: 2, Payload: make([]byte, coord.MaxPayload)},
	{Kind: Stop, Text: "enough"},
	{Kind: Fail, Text: clip("bad \xff" + strings.Repeat("long", 10000))},
	{Kind: Fail, Lost: new(godwit.NodeID), Text: "node 0 (a): node lost: cable cut"},
	{Kind: Partition, Text: "nodes 1 and 2 do not reach each other"},
	{Kind: Leave},
}

func same(a, b Message) bool {
	p := a.Payload
	a.Payload, b.Payload = nil, append([]byte{}, b.Payload...)
	ok := bytes.Equal(p, b.Payload)
	b.Payload = nil
	ok = ok && (a.Lost == nil) == (b.Lost == nil) && (a.Lost == nil || *a.Lost == *b.Lost)
	return ok && a.Kind == b.Kind && a.Name == b.Name && a.Gen == b.Gen && a.Text == b.Text
}

func TestWordsSurviveTheWay(t *testing.T) {
	for _, w := range messages {
		got, err := DecodeMessage(w.Encode())
		if err != nil || !same(got, w) {
			t.Errorf("%s %.20q came as %s %.20q, %v", w.Kind, w.Name, got.Kind, got.Name, err)
		}
	}
}

func TestWordsThatMeanNothingAreRefused(t *testing.T) {
	for _, b := range []string{
		"", "\n", "{}", "{}\n", "[]\n", `{"kind":"barrier","gen":1}` + "\n", `{"kind":"barrier","name":"b"}` + "\n",
		`{"kind":"hello"}` + "\n", `{"kind":"barrier","name":"b","gen":-1}` + "\n", `{"kind":"leave"}`, `{"kind":"leave","gen":"x"}` + "\n",
	} {
		if w, err := DecodeMessage([]byte(b)); err == nil {
			t.Errorf("%q was taken for %+v", b, w)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, w := range messages {
		if len(w.Payload) < 100 {
			f.Add(w.Encode())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := DecodeMessage(b)
		if err != nil {
			return
		}
		if again, err := DecodeMessage(w.Encode()); err != nil || !same(again, w) {
			t.Errorf("%+v became %+v, %v", w, again, err)
		}
		if !utf8.ValidString(w.Name) {
			t.Errorf("a name that no session sends: %q", w.Name)
		}
	})
}
