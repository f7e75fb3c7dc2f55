package corpus

import (
	"cmp"
	"slices"
)

// A Vocabulary is the words of a corpus that are frequent enough, numbered by
// falling frequency, those of equal frequency in the order of their bytes. It
// does not change and may be used by any number of goroutines.
type Vocabulary struct {
	Words  []string // by number
	Counts []int64  // how often each stands in the corpus
	Total  int64    // their sum
	ids    map[string]int32
}

// ID returns the number of a word.
func (v *Vocabulary) ID(word string) (id int32, ok bool) {
	id, ok = v.ids[word]
	return id, ok
}

// maxDistinct bounds the words that are counted at a time, to about a gigabyte.
const maxDistinct = 1 << 23

// A counter counts words.
type counter struct {
	max    int
	ids    map[string]int32
	words  []string
	counts []int64
	// floor bounds how many occurrences of a word may be missing from its count, because
	// it was removed as one of the rarest when there were too many.
	floor int64
}

func newCounter(max int) *counter { return &counter{max: max, ids: map[string]int32{}} }

func (c *counter) add(word []byte) {
	if i, ok := c.ids[string(word)]; ok {
		c.counts[i]++
		return
	}
	if len(c.words) == c.max {
		c.forget()
	}
	w := string(word)
	c.ids[w] = int32(len(c.words))
	c.words = append(c.words, w)
	c.counts = append(c.counts, 1)
}

// forget removes the rarest words. What is dropped occurred at most floor times
// since it was last dropped, as in word2vec's vocabulary pass.
func (c *counter) forget() {
	for len(c.words) > c.max/2 {
		c.floor++
		n := 0
		for i, w := range c.words {
			if c.counts[i] > c.floor {
				c.words[n], c.counts[n] = w, c.counts[i]
				n++
			}
		}
		clear(c.words[n:])
		c.words, c.counts = c.words[:n], c.counts[:n]
	}
	clear(c.ids)
	for i, w := range c.words {
		c.ids[w] = int32(i)
	}
}

// vocabulary returns the words that occurred at least least times.
func (c *counter) vocabulary(least int64) *Vocabulary {
	var order []int
	for i, n := range c.counts {
		if n >= least {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.counts[b], c.counts[a]), cmp.Compare(c.words[a], c.words[b]))
	})
	v := &Vocabulary{ids: make(map[string]int32, len(order))}
	for id, i := range order {
		v.ids[c.words[i]] = int32(id)
		v.Words = append(v.Words, c.words[i])
		v.Counts = append(v.Counts, c.counts[i])
		v.Total += c.counts[i]
	}
	return v
}
