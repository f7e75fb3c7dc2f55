package dashboard_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/godwit-ps/godwit/dashboard"
)

// What runs write to a folder is shown until the server is closed.
func Example() {
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := dashboard.Serve(dashboard.Config{Dir: dir, Addr: ":0", Live: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.HasPrefix(s.URL(), "http://127.0.0.1:"))
	fmt.Println(s.Close(context.Background()))
	// Output:
	// true
	// <nil>
}
