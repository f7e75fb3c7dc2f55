package wire

import (
	"bytes"
	"slices"
	"testing"
)

func TestAsksSurviveTheWay(t *testing.T) {
	for n := range 20 {
		for _, answer := range []bool{false, true} {
			a := Ask{Answer: answer, Number: 1<<63 + 5, Text: bytes.Repeat([]byte{7}, n)}
			f := a.Frame()
			got, err := ParseAsk(f)
			if err != nil || got.Answer != answer || got.Number != a.Number || !bytes.Equal(got.Text, a.Text) {
				t.Errorf("%+v came as %+v, %v", a, got, err)
			}
			if !IsAsk(f) || IsData(f) || CheckLen(f) != nil || len(f)%frameAlign != 0 {
				t.Errorf("a frame of %d bytes for %d bytes of text", len(f), n)
			}
		}
	}
	if IsAsk(Goodbye(1)) {
		t.Error("a goodbye is taken for a question")
	}
}

func TestAsksOfWrongLengthsAreRefused(t *testing.T) {
	f := Ask{Text: []byte("abc")}.Frame()
	long, padded := slices.Clone(f), slices.Clone(f)
	long[HeaderLen] = 5
	padded[len(padded)-1] = 1
	short := slices.Clone(f[:HeaderLen])
	putLen(short)
	for what, b := range map[string][]byte{"a text beyond the frame": long, "bytes behind the text": padded, "no length": short, "a goodbye": Goodbye(1)} {
		if _, err := ParseAsk(b); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func FuzzAsk(f *testing.F) {
	f.Add(Ask{Number: 3, Text: []byte("what?")}.Frame())
	f.Add(Ask{Answer: true}.Frame())
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := ParseAsk(b); err == nil && !bytes.Equal(a.Frame(), b) {
			t.Errorf("%x is read as %+v, which is written otherwise", b, a)
		}
	})
}
