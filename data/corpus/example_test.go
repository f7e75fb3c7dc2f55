package corpus_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/corpus"
)

// A corpus numbers its words by falling frequency. Each worker reads blocks of
// sentences with a reader of its own.
func ExampleFromText() {
	text := []byte("the goose saw the fox\nthe fox saw a goose\nthe hen saw nothing\n")
	c, err := corpus.FromText("farm.txt", text, corpus.Options{Format: corpus.Lines, MinCount: 2, Block: 8})
	if err != nil {
		panic(err)
	}
	v := c.Vocabulary
	for id, word := range v.Words {
		fmt.Println(id, word, v.Counts[id])
	}

	r := c.Reader()
	defer r.Close()
	var t corpus.Text
	for b := range c.Blocks() {
		if err := r.Read(b, &t); err != nil {
			panic(err)
		}
		from := int32(0)
		for _, to := range t.Ends {
			fmt.Printf("block %d: %v\n", b, t.Words[from:to])
			from = to
		}
	}
	// Output:
	// 0 the 4
	// 1 saw 3
	// 2 fox 2
	// 3 goose 2
	// block 0: [0 3 1 0 2]
	// block 0: [0 2 1 3]
	// block 1: [0 1]
}
