package ratings_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/ratings"
)

// Users and films have names in the file and numbers in the set.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "ratings")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ratings.csv")
	text := "user,film,rating\nann,Alien,5\nann,Brazil,3\nbob,Brazil,4\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}

	set, err := ratings.Load(file, ratings.Options{})
	if err != nil {
		panic(err)
	}
	for _, r := range set.Train {
		fmt.Println(r, set.RowName(int(r.Row)), set.ColName(int(r.Col)))
	}
	fmt.Println("mean:", set.Mean())
	// Output:
	// {0 0 5} ann Alien
	// {0 1 3} ann Brazil
	// {1 1 4} bob Brazil
	// mean: 4
}
