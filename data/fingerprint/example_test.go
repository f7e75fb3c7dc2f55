package fingerprint_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/fingerprint"
)

// of is the fingerprint of a data set of names with a number each.
func of(names []string, numbers []float32) string {
	var h fingerprint.Hash
	h.Texts(names)
	for _, x := range numbers {
		h.Float(x)
	}
	return h.String()
}

// Nodes that loaded the same data have equal fingerprints. Where one text ends and
// the next begins counts, too.
func Example() {
	here := of([]string{"fox", "hen"}, []float32{1, 2})
	fmt.Println(here == of([]string{"fox", "hen"}, []float32{1, 2}))
	fmt.Println(here == of([]string{"fox", "hen"}, []float32{1, 3}))
	fmt.Println(here == of([]string{"foxh", "en"}, []float32{1, 2}))
	// Output:
	// true
	// false
	// false
}
