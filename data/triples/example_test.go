package triples_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/triples"
)

// A filter knows the true answers of a query, so that a ranking can leave out all
// but the one that it asks for.
func Example() {
	dir, err := os.MkdirTemp("", "triples")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, facts := range map[string]string{
		"train.txt": "ann\tknows\tbob\nann\tknows\tcid\nbob\tworks_for\tcid\n",
		"valid.txt": "cid\tknows\tann\n",
		"test.txt":  "ann\tknows\tdee\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(facts), 0o600); err != nil {
			panic(err)
		}
	}

	g, err := triples.Load(dir, triples.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Stats())
	query := g.Test[0]
	for _, o := range triples.NewFilter(g).Objects(query.S, query.R) {
		fmt.Println(g.Entities[query.S], g.Relations[query.R], g.Entities[o])
	}
	// Output:
	// 4 entities, 2 relations, 3/1/1 triples in train/valid/test; 1 entities outside train; 1 valid or test triples that cannot be learned
	// ann knows bob
	// ann knows cid
	// ann knows dee
}
