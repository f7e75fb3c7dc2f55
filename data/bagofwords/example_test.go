package bagofwords_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/bagofwords"
)

// Every paragraph of a text becomes a document. Words that occur once are left out.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "bagofwords")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, []byte("The goose saw the fox.\n\nA fox saw the hen.\n"), 0o600); err != nil {
		panic(err)
	}

	set, err := bagofwords.Load(text, bagofwords.Options{Length: 5, MinCount: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println("vocabulary:", set.Names)
	for i := range set.Len() {
		fmt.Println("document", i, "has the words", set.Doc(i))
	}
	// Output:
	// vocabulary: [the fox saw]
	// document 0 has the words [0 2 0 1]
	// document 1 has the words [1 2 0]
}
