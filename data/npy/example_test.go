package npy_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/npy"
)

// A table is written and read a few rows at a time: neither side holds it whole.
func Example() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "table.npy")

	w, err := npy.Create(path, 3, 2)
	if err != nil {
		panic(err)
	}
	for row := range 3 {
		if err := w.WriteRows([]float32{float32(row), float32(row * row)}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}

	r, err := npy.Open(path)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	fmt.Println(r.Shape())
	buf := make([]float32, 2*2) // two rows
	for {
		n, err := r.ReadRows(buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(n, "rows:", buf[:n*2])
	}
	// Output:
	// 3 2
	// 2 rows: [0 0 1 1]
	// 1 rows: [2 4]
}
