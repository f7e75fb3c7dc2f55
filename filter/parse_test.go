package filter

import (
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestParseReadsWhatNamesWrite(t *testing.T) {
	for text, want := range map[string][]godwit.Filter{
		"":                           nil,
		" ":                          nil,
		"sparse":                     {Sparse{}},
		"fixed(bytes=1), sparse, s2": {FixedPoint(1), Sparse{}, Compress{S2}},
		"fixed( bytes=2 ,answers=1,forget=1 ),zstd": {Fixed{2, true, true}, Compress{Zstd}},
		"bf16":                            {BF16{}},
		"bf16(answers=1), noise(std=0.5)": {BF16{Answers: true}, Noise{0.5}},
		"significant(threshold=0.01,decay=2),skip(p=0.25)": {Significant{0.01, 2}, Skip{0.25}},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, got, err, want)
		}
		var names []string
		for _, f := range got {
			names = append(names, f.Name())
		}
		if again, err := Parse(strings.Join(names, ",")); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("Parse(%q) = %v, %v, want %v", names, again, err, want)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"fixed":                        "in 0 bytes, want 1 or 2",
		"fixed(bytes=3)":               "in 3 bytes",
		"fixd(bytes=1)":                `no filter "fixd", want bf16, fixed, noise, s2, significant, skip, sparse, zstd`,
		"sparse,":                      `no filter ""`,
		"sparse,sparse":                "sparse is there twice",
		"sparse(x=1)":                  "no parameters",
		"fixed(bytes=1":                "closing bracket",
		"skip(p=1)":                    "between 0 and 1",
		"skip":                         "between 0 and 1",
		"noise":                        "above 0",
		"significant(decay=1)":         "threshold 0",
		"significant(thresh=1)":        "no parameter thresh, only threshold, decay",
		"bf16, fixed(bytes=1,answer=1": "closing bracket",
		"fixed(bytes=1,answers=2)":     "answers=2 is not 1",
		"bf16(forget=7)":               "forget=7 is not 1",
	} {
		if fs, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v; the error should say %q", text, fs, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("fixed(bytes=1,answers=1), sparse")
	f.Add("significant(threshold=1,decay=2),skip(p=.5),noise(std=1),bf16,s2,zstd")
	f.Add("(),),(")
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := Parse(text)
		if err != nil {
			return
		}
		var names []string
		for _, f := range fs {
			names = append(names, f.Name())
		}
		if again, err := Parse(strings.Join(names, ", ")); err != nil || !reflect.DeepEqual(again, fs) {
			t.Fatalf("%q is %v, which is read as %v, %v", text, fs, again, err)
		}
	})
}
