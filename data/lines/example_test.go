package lines_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
)

// A reader of a format takes lines one by one, and says where something is wrong.
func ExampleScanner() {
	in := lines.New("ages.txt", strings.NewReader("Ada 36\r\nAlan\n"), 80)
	for in.Scan() {
		name, age, ok := strings.Cut(string(in.Text()), " ")
		if !ok {
			fmt.Println(in.Fail(errors.New("no age")))
			continue
		}
		fmt.Println(name, "is", age)
	}
	// Output:
	// Ada is 36
	// ages.txt:2: no age
}
