package corpus

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Spec describes a corpus to [Generate]. Start from [DefaultSpec]: the zero
// Spec is not valid.
type Spec struct {
	// Stems and Forms say how many words have a place in the structure: each of
	// 4 … 5,000 stems has 2 … 12 forms.
	Stems, Forms int
	// Words is the length of the text, at least 80 for each form of each stem,
	// which stands in every eighth of them on the average.
	Words int
	// Exponent is the exponent of the popularity of stems, and of of fillers,
	// 0 (all alike) … 2.
	Exponent float64
	// Seed decides everything that is drawn: equal specs give equal texts.
	Seed uint64
}

// DefaultSpec describes a text that trains in seconds.
func DefaultSpec() Spec { return Spec{Stems: 60, Forms: 5, Words: 300_000, Exponent: 1, Seed: 1} }

const (
	maxStems = 5000
	maxForms = 12
	maxWords = 1 << 30
	minUses  = 80
)

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	bad := func(field string, got, lo, hi any) error {
		return setting.Outside("corpus.Spec", field, got, lo, hi)
	}
	switch {
	case s.Stems < 4 || s.Stems > maxStems:
		return bad("Stems", s.Stems, 4, maxStems)
	case s.Forms < 2 || s.Forms > maxForms:
		return bad("Forms", s.Forms, 2, maxForms)
	case s.Words < minUses*s.Stems*s.Forms || s.Words > maxWords:
		return bad("Words", s.Words, minUses*s.Stems*s.Forms, maxWords)
	case !(s.Exponent >= 0 && s.Exponent <= 2):
		return bad("Exponent", s.Exponent, 0, 2)
	}
	return nil
}

// A Generated corpus is a text and what can be learned from it.
//
// Stems and forms have companions: words that occur near them and nowhere else, as
// "milk" and "cheese" near all words about cows. A sentence is about one form of one
// stem. It contains, in any order, that word, companions of its stem and of its form, and
// fillers, which occur in any context and some of which are very frequent. So the context
// of a word is the sum of the contexts of its stem and of its form, and so is its vector.
// Therefore analogies hold: form f of stem s is to form g of s as form f of stem t is to
// form g of t. Companions of one stem or form are each other's neighbours.
type Generated struct {
	// Text is the corpus, UTF-8 in the format Prose.
	Text []byte
	// Analogies are a sample of the true ones: a is to b as c is to d.
	Analogies [][4]string
	// Companions are groups of words that stand near the same words: of each
	// stem, then of each form.
	Companions [][]string
}

const (
	companions     = 4   // of each stem and each form
	fillers        = 200 // words that occur in any context
	maxAnalogies   = 2000
	paragraphLines = 4
)

// Generate makes a corpus in the format Prose.
func Generate(s Spec) (*Generated, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x636f72707573))
	n := newNamer(r)
	w := writer{r: r, g: &Generated{}}
	for range s.Stems {
		stem := n.name(2)
		forms := make([]string, s.Forms)
		for f := range forms {
			forms[f] = stem + endings[f]
		}
		w.stems = append(w.stems, forms)
	}
	for range s.Stems + s.Forms {
		w.g.Companions = append(w.g.Companions, []string{n.name(3), n.name(3), n.name(3), n.name(3)}[:companions])
	}
	for range fillers {
		w.fillers = append(w.fillers, n.name(1))
	}
	// No stem is a hundred times as popular as another, unlike fillers.
	w.ofStems, w.ofFillers = zipf(s.Stems, float64(s.Stems)/10, s.Exponent), zipf(fillers, 0, s.Exponent)
	for w.words < s.Words {
		w.sentence()
	}
	w.analogies()
	return w.g, nil
}

// endings make forms of a stem. No stem ends like that: see name.
var endings = [maxForms]string{"", "s", "ed", "ing", "er", "est", "ly", "ness", "ful", "less", "ish", "dom"}

// A namer makes words that are all different.
type namer struct {
	r    *rand.Rand
	used map[string]bool
}

func newNamer(r *rand.Rand) *namer { return &namer{r, map[string]bool{}} }

// name returns a new word of so many syllables or more. Its last letter is a
// vowel, but for e, and the endings of forms end in consonants or in "ly", so
// that no form is another name.
func (n *namer) name(syllables int) string {
	const consonants, vowels = "bdfgklmnprtvz", "aiou"
	for tries := 0; ; tries++ {
		var b []byte
		for range syllables + tries/50 {
			b = append(b, consonants[n.r.IntN(len(consonants))], vowels[n.r.IntN(len(vowels))])
		}
		if w := string(b); !n.used[w] {
			n.used[w] = true
			return w
		}
	}
}

// zipf returns the popularities (rank+1+shift)^-exponent of n things, summed up.
func zipf(n int, shift, exponent float64) []float64 {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1)+shift, -exponent)
		sums[i] = sum
	}
	return sums
}

// popular draws one of the things that sums are of.
func popular(r *rand.Rand, sums []float64) int {
	x := r.Float64() * sums[len(sums)-1]
	return min(sort.SearchFloat64s(sums, x), len(sums)-1)
}

type writer struct {
	r                  *rand.Rand
	g                  *Generated
	stems              [][]string // the forms of each
	fillers            []string
	ofStems, ofFillers []float64 // popularities, summed up
	line               []string
	words              int
	lines              int
}

// sentence writes a line about one form of one stem.
func (w *writer) sentence() {
	s, f := popular(w.r, w.ofStems), w.r.IntN(len(w.stems[0]))
	w.line = append(w.line[:0], w.stems[s][f])
	for _, group := range [2][]string{w.g.Companions[s], w.g.Companions[len(w.stems)+f]} {
		for range 2 {
			w.line = append(w.line, group[w.r.IntN(len(group))])
		}
	}
	for range 3 {
		w.line = append(w.line, w.fillers[popular(w.r, w.ofFillers)])
	}
	w.r.Shuffle(len(w.line), func(i, j int) { w.line[i], w.line[j] = w.line[j], w.line[i] })
	out := bytes.NewBuffer(w.g.Text)
	for i, x := range w.line {
		if i == 0 {
			x = string(x[0]-'a'+'A') + x[1:]
		} else {
			out.WriteByte(' ')
		}
		out.WriteString(x)
	}
	out.WriteString(".\n")
	if w.lines++; w.lines%paragraphLines == 0 {
		out.WriteByte('\n')
	}
	w.g.Text = out.Bytes()
	w.words += len(w.line)
}

// analogies draws true ones.
func (w *writer) analogies() {
	stems, forms := len(w.stems), len(w.stems[0])
	all := float64(stems) * float64(stems-1) * float64(forms) * float64(forms-1)
	for range int(math.Min(maxAnalogies, all)) {
		s, t := distinct(w.r, stems)
		f, g := distinct(w.r, forms)
		w.g.Analogies = append(w.g.Analogies, [4]string{w.stems[s][f], w.stems[s][g], w.stems[t][f], w.stems[t][g]})
	}
}

// distinct draws two different numbers below n.
func distinct(r *rand.Rand, n int) (a, b int) {
	a, b = r.IntN(n), r.IntN(n-1)
	if b >= a {
		b++
	}
	return a, b
}
