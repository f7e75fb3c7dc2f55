package corpus

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// scan returns the words of a text, with "|" where sentences end.
func scan(t testing.TB, s *scanner) ([]string, error) {
	t.Helper()
	var got []string
	for {
		tok, err := s.next()
		if err != nil {
			return got, err
		}
		switch tok {
		case word:
			got = append(got, string(s.word))
		case sentence:
			if len(got) == 0 || got[len(got)-1] == "|" {
				t.Fatal("a sentence without words")
			}
			got = append(got, "|")
		case text:
			return got, nil
		}
	}
}

func TestTextIsCutIntoWordsAndSentences(t *testing.T) {
	long := strings.Repeat("x", MaxWord+1)
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{Prose, "", ""},
		{Prose, " \n\t\r\n -- \n\n", ""},
		{Prose, "Mr. Smith went home.\nHe slept.", "mr smith went home he slept |"},
		{Prose, "One two.\n\nThree", "one two | three |"},
		{Prose, "one\r\n \t\r\ntwo\n\n\n\nthree\n", "one | two | three |"},
		{Prose, "one\n***\ntwo", "one two |"}, // no empty line
		{Prose, "\ufeffDon't 'quote' rock'n'roll o''clock dogs'", "don't quote rock'n'roll o clock dogs |"},
		{Prose, "It’s well-taught, 1842-3!", "it's well taught 1842 3 |"},
		{Prose, "ÉTÉ naïve Straße Ωmega 東京 हिन्दी", "été naïve straße ωmega 東京 हिन्दी |"},
		{Prose, long + " a", "a |"},
		{Prose, long[3:] + "東 a", "a |"}, // the last character begins within the bound, and ends behind it
		{Lines, long[3:] + "東 a", "a |"},
		{Prose, long[1:] + " a", long[1:] + " a |"},
		{Prose, "one\n" + long + "\ntwo", "one two |"},
		{Lines, "One, two.\nThree  don't\t4\u00a0five\n\nsix", "One, two. | Three don't 4 five | six |"},
		{Lines, "東京 " + long + "\r\nb", "東京 | b |"},
	} {
		for _, slow := range []bool{false, true} {
			s := newScanner(c.format, 1000)
			if slow {
				s.reset(iotest.OneByteReader(strings.NewReader(c.text)), 0)
			} else {
				s.reset(strings.NewReader(c.text), 0)
			}
			got, err := scan(t, s)
			if s := strings.Join(got, " "); err != nil || s != c.want {
				t.Errorf("%s %q: %q, %v, want %q", c.format, c.text, s, err, c.want)
			}
		}
	}
}

func TestSentencesLongerThanABlockAreCut(t *testing.T) {
	s := newScanner(Prose, 3)
	s.reset(strings.NewReader("a b c\n\nd e f g h i j k"), 0)
	got, err := scan(t, s)
	if s := strings.Join(got, " "); err != nil || s != "a b c | d e f | g h i | j k |" {
		t.Errorf("%q, %v", s, err)
	}
}

// randomText is text of short and long lines, words, and paragraphs.
func randomText(r *rand.Rand, words int) []byte {
	var b bytes.Buffer
	for range words {
		fmt.Fprintf(&b, "w%d", int(20*r.ExpFloat64()))
		switch x := r.IntN(200); {
		case x < 10:
			b.WriteString("\n")
		case x < 15:
			b.WriteString(".\n\n")
		case x < 16:
			b.WriteString(strings.Repeat(" ", r.IntN(1000)))
		default:
			b.WriteString([]string{" ", ", ", " – "}[r.IntN(3)])
		}
	}
	return b.Bytes()
}

// textOf puts the words and ends of all blocks together, read in an order.
func textOf(t *testing.T, c *Corpus, order []int) string {
	t.Helper()
	r := c.Reader()
	defer r.Close()
	blocks := make([]string, c.Blocks())
	var x Text
	for _, i := range order {
		if err := r.Read(i, &x); err != nil {
			t.Fatal(err)
		}
		if x.Raw < 1 || x.Raw >= 2*c.options.Block {
			t.Fatalf("block %d has %d words", i, x.Raw)
		}
		var b strings.Builder
		from := int32(0)
		for _, end := range x.Ends {
			for _, id := range x.Words[from:end] {
				b.WriteString(c.Vocabulary.Words[id] + " ")
			}
			b.WriteString("| ")
			from = end
		}
		if int(from) != len(x.Words) {
			t.Fatalf("block %d ends within a sentence", i)
		}
		blocks[i] = b.String()
	}
	return strings.Join(blocks, "")
}

func compress(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBlocksReadInAnyOrderGiveTheWholeText(t *testing.T) {
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	dir := t.TempDir()
	whole, want := randomText(r, 5000), ""
	parts := [][]byte{whole, []byte(" \n"), randomText(r, 3), randomText(r, 2000)}
	for i, p := range parts {
		if i%2 == 0 {
			p = compress(t, p)
		}
		write(t, dir, fmt.Sprintf("%d.txt.gz", i), p)
	}
	write(t, dir, "readme.md", []byte("no part"))
	write(t, dir, ".hidden.txt", []byte("no part"))
	for _, block := range []int{1, 7, 500, MaxBlock} {
		var got []string
		fromMemory, err := FromText("memory", whole, Options{MinCount: 1, Block: block})
		if err != nil {
			t.Fatal(err)
		}
		if block == 500 {
			want = textOf(t, fromMemory, r.Perm(fromMemory.Blocks()))
		}
		for name, data := range map[string][]byte{"plain": whole, "gz": compress(t, whole)} {
			c, err := Open(write(t, t.TempDir(), name, data), Options{MinCount: 1, Block: block})
			if err != nil {
				t.Fatal(err)
			}
			if c.Blocks() != fromMemory.Blocks() || !slices.Equal(c.starts, fromMemory.starts) {
				t.Fatalf("%s: other blocks than in memory", name)
			}
			order := r.Perm(c.Blocks())
			if len(order) > 200 { // in order, to spare the time to decompress again
				slices.Sort(order)
			}
			got = append(got, textOf(t, c, order))
		}
		if got[0] != got[1] {
			t.Fatalf("blocks of %d: plain and compressed text differ", block)
		}
		c, err := Open(dir, Options{MinCount: 1, Block: block})
		if err != nil {
			t.Fatal(err)
		}
		order := r.Perm(c.Blocks())
		if len(order) > 200 {
			slices.Sort(order)
		}
		if all := textOf(t, c, order); !strings.HasPrefix(all, got[0]) || strings.Contains(all, "part") || c.Stats.Files != 4 {
			t.Errorf("the folder has %+v, and other text than its files", c.Stats)
		}
	}
	// What was read does not depend on where a reader begins, but where sentences
	// are cut does on the length of a block.
	again, err := FromText("memory", whole, Options{MinCount: 1, Block: 500})
	if err != nil {
		t.Fatal(err)
	}
	if textOf(t, again, again.order()) != want {
		t.Error("the order of reading matters")
	}
}

func (c *Corpus) order() []int {
	var all []int
	for i := range c.Blocks() {
		all = append(all, i)
	}
	return all
}

func TestSkippingBlocksForwardsOpensNoFileAgain(t *testing.T) {
	text := randomText(rand.New(rand.NewPCG(1, 1)), 50_000)
	c, err := Open(write(t, t.TempDir(), "x.gz", compress(t, text)), Options{MinCount: 1, Block: 50})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Reader()
	defer r.Close()
	var x Text
	var in *stream
	for i, step := 0, 1; i < c.Blocks(); i, step = i+step, step*7%15 { // steps within what is buffered, and beyond
		if err := r.Read(i, &x); err != nil {
			t.Fatal(err)
		}
		if in == nil {
			in = r.in
		}
		if r.in != in {
			t.Fatalf("block %d was looked for from the beginning of the file", i)
		}
	}
	for _, far := range []int{c.Blocks() - 1, 3} { // and back
		if err := r.Read(far, &x); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRareWordsAreReadOver(t *testing.T) {
	c, err := FromText("x", []byte("b a a c b a\n\nd d\n\nc\n\nb"), Options{MinCount: 2, Block: 6})
	if err != nil {
		t.Fatal(err)
	}
	v := c.Vocabulary
	if fmt.Sprint(v.Words, v.Counts, v.Total) != "[a b c d] [3 3 2 2] 10" {
		t.Errorf("vocabulary is %v %v of %d", v.Words, v.Counts, v.Total)
	}
	c, err = FromText("x", []byte("b a a e b a\n\ne d d\n\nc\n\nb"), Options{MinCount: 3, Block: 6})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, c, c.order()); got != "b a a b a | b | " {
		t.Errorf("the text is %q", got)
	}
	if _, ok := c.Vocabulary.ID("d"); ok {
		t.Error("a rare word has a number")
	}
}

func TestAWordListThatGrowsTooLongForgetsTheRarest(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "rare%d often%d\n", i, i%7)
	}
	c, err := count([]source{{name: "x", text: []byte(b.String())}}, Options{MinCount: 300, Block: 100}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Vocabulary.Words) != 7 || c.Stats.Floor == 0 || !strings.Contains(c.String(), "too many different words") {
		t.Errorf("%d words, %v", len(c.Vocabulary.Words), c)
	}
	for i, n := range c.Vocabulary.Counts {
		if n+c.Stats.Floor < 714 || n > 715 {
			t.Errorf("%s was counted %d times", c.Vocabulary.Words[i], n)
		}
	}
}

func TestBadInputIsNamed(t *testing.T) {
	dir := t.TempDir()
	good := Options{MinCount: 1, Block: 10}
	gz := compress(t, []byte(strings.Repeat("some text to compress\n", 1000)))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		o          Options
		want       []string
	}{
		{"utf16", "\xff\xfea\x00", good, []string{"line 1", "NUL"}},
		{"nul", "a\n\nb\x00", good, []string{"line 3", "NUL"}},
		{"none", "", good, []string{"none", "no words"}},
		{"long", strings.Repeat("x", 10_000), good, []string{"long", "0 different words"}},
		{"rare", "a b c", Options{MinCount: 2, Block: 10}, []string{"rare", "2 times"}},
		{"trunc.gz", string(gz[:len(gz)-30]), good, []string{"trunc.gz", "ends early"}},
		{"sum.gz", string(gz[:len(gz)-8]) + "12345678", good, []string{"sum.gz", "damaged"}},
		{"head.gz", "\x1f\x8b\x00\x00", good, []string{"head.gz", "ends early"}},
		{"more.gz", string(gz) + "and not gzip data", good, []string{"more.gz", "followed by something else"}},
		{"ok", "a", Options{MinCount: 0, Block: 1}, []string{"MinCount is 0"}},
		{"ok", "a", Options{MinCount: 1, Block: 0}, []string{"Block is 0"}},
		{"ok", "a", Options{MinCount: 1, Block: 1, Format: "csv"}, []string{"csv", "prose", "lines"}},
	} {
		_, err := Open(write(t, dir, c.name, []byte(c.text)), c.o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one that mentions %q", c.name, err, want)
			}
		}
	}
	for path, want := range map[string]string{"missing": "missing", "empty": "no files"} {
		if _, err := Open(filepath.Join(dir, path), good); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that mentions %q", path, err, want)
		}
	}
}

func TestBytesThatAreNoTextArePartsOfWordsAndCounted(t *testing.T) {
	for format, want := range map[Format][]string{
		Prose: {"caf\ufffd", "fine", "is", "\ufffd\ufffd"}, Lines: {"Caf\ufffd", "fine", "is", "\ufffd\ufffd!"},
	} {
		text := "Caf\xe9 is fine\nfine is\n\xe6\x9d!"
		c, err := FromText("text", []byte(text), Options{Format: format, MinCount: 1, Block: 3})
		if err != nil {
			t.Fatal(err)
		}
		words := slices.Sorted(slices.Values(c.Vocabulary.Words))
		if slices.Sort(want); !slices.Equal(words, want) || c.Stats.Replaced != 3 || len(c.Warnings()) != 1 || !strings.Contains(c.Warnings()[0], "3 bytes") {
			t.Errorf("%s: words %q, %d replaced, %q", format, words, c.Stats.Replaced, c.Warnings())
		}
		r := c.Reader() // which finds the same words again
		n := 0
		for b := range c.Blocks() {
			var x Text
			if err := r.Read(b, &x); err != nil {
				t.Fatal(err)
			}
			n += len(x.Words)
		}
		if int64(n) != c.Stats.Words {
			t.Errorf("%s: %d words are read, %d were counted", format, n, c.Stats.Words)
		}
	}
}

func TestAFileThatChangedIsNotReadOn(t *testing.T) {
	for _, zip := range []bool{false, true} {
		text := []byte(strings.Repeat("one two three four\n\n", 1000))
		if zip {
			text = compress(t, text)
		}
		path := write(t, t.TempDir(), "x", text)
		c, err := Open(path, Options{MinCount: 1, Block: 10})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Reader()
		var x Text
		if err := r.Read(5, &x); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(path), "x", text[:len(text)/2])
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.Read(200, &x); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want one that says that the file changed", err)
		}
		if err := r.Read(c.Blocks(), &x); err == nil {
			t.Error("a block that is not there was read")
		}
	}
}

func TestMemoryDoesNotGrowWithTheText(t *testing.T) {
	line := strings.Repeat("many words that come again and again ", 15_000) // a line of half a megabyte
	used := func(times int) uint64 {
		path := write(t, t.TempDir(), "x", []byte(strings.Repeat(line, times)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := Open(path, Options{MinCount: 1, Block: 1000})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Reader()
		defer r.Close()
		var x Text
		for i := range c.Blocks() {
			if err := r.Read(i, &x); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	used(1)
	if one, four := used(1), used(4); four > one+1<<17 {
		t.Errorf("reading half a megabyte allocates %d bytes, four times as much %d", one, four)
	}
}

func TestReadingBlocksAllocatesNothing(t *testing.T) {
	g, err := Generate(Spec{Stems: 10, Forms: 2, Words: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	c, err := FromText("x", g.Text, Options{MinCount: 1, Block: 100})
	if err != nil {
		t.Fatal(err)
	}
	r, i := c.Reader(), 0
	x := Text{Words: make([]int32, 0, 200), Ends: make([]int32, 0, 200)}
	if n := testing.AllocsPerRun(c.Blocks()-2, func() {
		if err := r.Read(i, &x); err != nil {
			t.Fatal(err)
		}
		i++
	}); n > 0 {
		t.Errorf("a block allocates %v times", n)
	}
}

// FuzzRead checks that bytes are refused, or that the blocks hold the words that
// were counted.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "a b\n\nc", "don't 'x' \u2019", "\xff", "a\x00", "\ufeff\r\n\r\n东京 x", "\x1f\x8b", strings.Repeat("y", 300) + " z"} {
		f.Add([]byte(s), uint8(3), false)
		f.Add([]byte(s), uint8(1), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, block uint8, lines bool) {
		o := Options{MinCount: 1, Block: 1 + int(block)}
		if lines {
			o.Format = Lines
		}
		c, err := FromText("fuzz", data, o)
		if err != nil {
			return
		}
		counts := make([]int64, len(c.Vocabulary.Words))
		r := c.Reader()
		var x Text
		order := c.order()
		slices.Reverse(order)
		for _, i := range order {
			if err := r.Read(i, &x); err != nil {
				t.Fatal(err)
			}
			for _, id := range x.Words {
				counts[id]++
			}
			if len(x.Ends) == 0 || int(x.Ends[len(x.Ends)-1]) != len(x.Words) || x.Raw != len(x.Words) {
				t.Fatalf("block %d is %+v", i, x)
			}
		}
		if !slices.Equal(counts, c.Vocabulary.Counts) {
			t.Fatalf("%v words were read, %v counted", counts, c.Vocabulary.Counts)
		}
	})
}

func TestRealNovelsAreRead(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with text/novels")
	}
	c, err := Open(filepath.Join(dir, "text", "novels"), Options{MinCount: 5, Block: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c)
	if n := c.Stats.Words; n < 13_500_000 || n > 15_000_000 {
		t.Errorf("%d words, want about 14.2 million", n)
	}
	if w := c.Vocabulary.Words; w[0] != "the" || len(w) < 30_000 || len(w) > 60_000 {
		t.Errorf("%d words, the most frequent is %q", len(w), w[0])
	}
	// The last hundredth, as a worker reads its part.
	r := c.Reader()
	defer r.Close()
	var x Text
	for i := c.Blocks() * 99 / 100; i < c.Blocks(); i++ {
		if err := r.Read(i, &x); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTextsThatDifferInOrderHaveOtherFingerprints(t *testing.T) {
	of := func(text string) string {
		c, err := FromText("text", []byte(text), Options{MinCount: 1, Block: 10})
		if err != nil {
			t.Fatal(err)
		}
		return c.Fingerprint()
	}
	text := of("one two two. one")
	if again := of("one two two. one"); again != text {
		t.Error("equal texts differ")
	}
	if text == of("two one two. one") {
		t.Error("texts of other order do not differ")
	}
}

// What a counter forgets it has counted at most as often as it says, and at least once in this text.
func TestACounterForgetsNoMoreThanItMust(t *testing.T) {
	c := newCounter(4)
	for _, w := range []string{"a", "b", "a", "c", "d", "e"} {
		c.add([]byte(w))
	}
	if c.floor != 1 || len(c.words) != 2 || c.words[0] != "a" || c.counts[0] != 2 {
		t.Errorf("the counter has %v of counts %v, and may lack %d of each", c.words, c.counts, c.floor)
	}
}
