package libsvm_test

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/data/libsvm"
)

// Examples are read as they are written, and a malformed line is an error that
// says where it is.
func ExampleRead() {
	set, err := libsvm.Read("ads.txt", strings.NewReader("+1 3:1 7:0.5\n-1 1:2\n-1 7:1\n"), libsvm.Options{})
	if err != nil {
		panic(err)
	}
	for i := range set.Len() {
		fmt.Println(set.Row(i))
	}
	fmt.Println(set.Stats())

	_, err = libsvm.Read("ads.txt", strings.NewReader("+1 3:1\n-1 3;1\n"), libsvm.Options{})
	fmt.Println(err)
	// Output:
	// 1 [3 7] [1 0.5]
	// 0 [1] [2]
	// 0 [7] [1]
	// 3 examples, 33.3% positive, 3 of 8 features used, 1.3 per example
	// libsvm: ads.txt:2: "3;1" is not of the form index:value
}
