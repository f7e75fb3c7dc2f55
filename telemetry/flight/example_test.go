package flight_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/telemetry/flight"
)

// A program hands the recorder to its node (node.Config.Flight), and may write a recording itself.
func Example() {
	dir, err := os.MkdirTemp("", "flight")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	r, err := flight.Start(dir)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	fmt.Println(filepath.Base(r.Write()))
	// Output: flight-1.out
}
