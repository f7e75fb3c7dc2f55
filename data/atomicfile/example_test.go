package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// A write that fails half way leaves the file as it was.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "atomicfile")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "result.txt")

	for _, failure := range []error{nil, errors.New("no more results")} {
		err := atomicfile.Write(path, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "result, then:", failure)
			return errors.Join(err, failure)
		})
		text, _ := os.ReadFile(path)
		fmt.Printf("error: %v; file: %s", err, text)
	}
	// Output:
	// error: <nil>; file: result, then: <nil>
	// error: no more results; file: result, then: <nil>
}
