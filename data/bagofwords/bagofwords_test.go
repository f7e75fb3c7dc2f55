package bagofwords

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/corpus"
)

func text(t *testing.T, s string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func words(s *Set, i int) string {
	var out []string
	for _, w := range s.Doc(i) {
		out = append(out, s.Names[w])
	}
	return strings.Join(out, " ")
}

func TestATextBecomesDocumentsOfTheWordsThatSaySomething(t *testing.T) {
	path := text(t, "the cat the dog the end\n\nthe the cat sat dog\n\nonce the the dog cat\n\nthe the the\n")
	set, err := Load(path, Options{Length: 5, MinCount: 2, Skip: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Check(); err != nil {
		t.Fatal(err)
	}
	// "the" is skipped; "end", "sat" and "once" are too rare; the last document
	// has nothing left.
	var got []string
	for i := range set.Len() {
		got = append(got, words(set, i))
	}
	if want := []string{"cat dog", "cat dog", "dog cat"}; !reflect.DeepEqual(got, want) || len(set.Names) != 2 {
		t.Errorf("documents %q of the words %q, want %q", got, set.Names, want)
	}
	if set, err = Load(path, Options{Length: 5, MinCount: 1, Skip: 1, Most: 1}); err != nil || len(set.Names) != 1 {
		t.Errorf("%v, %v, want documents of one word", set, err)
	}
}

func TestTextsThatLeaveNothingAreRefused(t *testing.T) {
	path := text(t, "a b c\n")
	for want, o := range map[string]Options{
		"no words of": {Length: 5, MinCount: 1, Skip: 3},
		"Skip is -1":  {Length: 5, MinCount: 1, Skip: -1},
		"Most is -1":  {Length: 5, MinCount: 1, Most: -1},
	} {
		if _, err := Load(path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	for _, o := range []Options{{MinCount: 1}, {Length: 5}, {Length: 5, MinCount: 1, Format: "poem"}} {
		if _, err := Load(path, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), DefaultOptions()); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a missing file: %v", err)
	}
	if err := DefaultOptions().Check(); err != nil {
		t.Error(err)
	}
}

// FuzzCut checks that a text is refused or makes a set that is right, of words
// that the text has.
func FuzzCut(f *testing.F) {
	f.Add([]byte("the cat the dog the end\n\nthe the cat sat dog\n"), uint8(5), uint8(1), uint8(0))
	f.Add([]byte("a b\nc a\n"), uint8(1), uint8(0), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, length, skip, most uint8) {
		o := Options{Length: 1 + int(length), MinCount: 1, Skip: int(skip), Most: int(most)}
		c, err := corpus.FromText("text", text, o.corpus())
		if err != nil {
			return
		}
		set, err := cut(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Check(); err != nil {
			t.Error(err)
		}
		if n := len(c.Vocabulary.Words); len(set.Names) > max(n-o.Skip, 0) || o.Most > 0 && len(set.Names) > o.Most || len(set.Words) > len(text) {
			t.Errorf("%v of a text of %d bytes with %d different words, skip %d, most %d", set, len(text), n, o.Skip, o.Most)
		}
	})
}

func TestGeneratedDocumentsAreAboutTheirTopics(t *testing.T) {
	s := DefaultSpec()
	set, topics, err := GenerateWithTruth(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Check(); err != nil {
		t.Fatal(err)
	}
	if set.Len() != s.Documents || len(set.Words) != s.Documents*s.Length || len(set.Names) != s.Words || len(topics) != s.Topics {
		t.Errorf("%v and %d topics do not fit %+v", set, len(topics), s)
	}
	// The first word of a topic has a share of 1/Σ r^-1.2 of the topic's words.
	sum := 0.0
	for r := 1; r <= s.Words; r++ {
		sum += math.Pow(float64(r), -s.Exponent)
	}
	count := 0
	for _, w := range set.Words {
		for _, order := range topics {
			if order[0] == w {
				count++
			}
		}
	}
	if got, want := float64(count)/float64(len(set.Words)), 1/sum; math.Abs(got/want-1) > 0.15 {
		t.Errorf("the topics' first words are %.3f of all, want about %.3f", got, want)
	}
	again, err := Generate(s)
	if err != nil || !reflect.DeepEqual(again, set) {
		t.Errorf("the same spec gives other documents (%v)", err)
	}
	for field, change := range map[string]func(*Spec){
		"Documents": func(s *Spec) { s.Documents = 0 }, "Length": func(s *Spec) { s.Length = 0 }, "Words": func(s *Spec) { s.Words = 1 },
		"Topics": func(s *Spec) { s.Topics = 0 }, "Exponent": func(s *Spec) { s.Exponent = math.NaN() },
	} {
		bad := s
		change(&bad)
		if _, err := Generate(bad); err == nil || !strings.Contains(err.Error(), "Spec."+field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestASplitDealsEveryDocumentOnce(t *testing.T) {
	set := &Set{Names: []string{"a", "b", "c"}}
	for _, d := range [][]int32{{0}, {1, 1}, {}, {2}} {
		set.Append(d)
	}
	rest, held := set.Split(3)
	if !reflect.DeepEqual(held.Words, []int32{0, 2}) || !reflect.DeepEqual(rest.Words, []int32{1, 1}) || rest.Len() != 2 {
		t.Errorf("rest %+v, held %+v", rest, held)
	}
	if some := set.Pick([]int{3, 1}); !reflect.DeepEqual(some.Words, []int32{2, 1, 1}) {
		t.Errorf("picked %+v", some)
	}
}

func TestBrokenSetsAreTold(t *testing.T) {
	for _, s := range []*Set{
		{Words: []int32{0}}, {Names: []string{"a"}, Words: []int32{1}, Starts: []int{0, 1}}, {Names: []string{"a"}, Words: []int32{-1}, Starts: []int{0, 1}},
		{Names: []string{"a"}, Words: []int32{0}, Starts: []int{0, 2, 1}}, {Names: []string{"a"}, Words: []int32{0}, Starts: []int{0}},
	} {
		if s.Check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}

func TestTheNovelsBecomeDocuments(t *testing.T) {
	root := os.Getenv("GODWIT_DATA")
	if root == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with text/novels")
	}
	set, err := Load(filepath.Join(root, "text", "novels"), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(set, set.Names[:10])
	if set.Len() < 10_000 || len(set.Names) < 15_000 || len(set.Words) < 3_000_000 {
		t.Errorf("%v", set)
	}
}

func TestSetsThatDifferHaveOtherFingerprints(t *testing.T) {
	of := func(names []string, docs ...[]int32) string {
		s := &Set{Names: names}
		for _, d := range docs {
			s.Append(d)
		}
		return s.Fingerprint()
	}
	ab, one := []string{"a", "b"}, of([]string{"a", "b"}, []int32{0, 1}, []int32{1})
	if one != of(ab, []int32{0, 1}, []int32{1}) {
		t.Error("equal sets differ")
	}
	for _, other := range []string{of(ab, []int32{0}, []int32{1, 1}), of(ab, []int32{1, 0}, []int32{1}), of([]string{"a", "c"}, []int32{0, 1}, []int32{1})} {
		if other == one {
			t.Error("sets that differ have the same fingerprint")
		}
	}
}
