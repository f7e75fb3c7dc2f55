package wordvec_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/wordvec"
)

// "man is to king as woman is to …", with vectors whose first element says how
// royal a word is, and whose others say of whom it is said.
func ExampleVectors_Analogy() {
	vectors, err := wordvec.New([]string{"man", "woman", "king", "queen", "apple"}, 3, []float32{
		0, 1, 0,
		0, 0, 1,
		1, 1, 0,
		1, 0, 1,
		-1, 1, 1,
	})
	if err != nil {
		panic(err)
	}
	wordvec.Normalize(vectors.Vals, vectors.Dim)
	man, _ := vectors.ID("man")
	king, _ := vectors.ID("king")
	woman, _ := vectors.ID("woman")
	for _, n := range vectors.Analogy(man, king, woman, 1) {
		fmt.Printf("%s %.2f\n", n.Name, n.Cosine)
	}
	// Output:
	// queen 0.96
}
