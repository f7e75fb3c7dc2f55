package setting_test

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/data/setting"
)

// Config are the settings of some task.
type Config struct{ Rank, Rounds int }

func (c Config) Check() error {
	if c.Rank < 1 || c.Rank > 100 {
		return setting.Outside("mine.Config", "Rank", c.Rank, 1, 100)
	}
	return nil
}

// A program that knows a field by the name of a flag says the error in its words.
func ExampleError_Pointers() {
	c := &Config{Rank: 1000, Rounds: 3}
	flags := map[any]string{&c.Rank: "--rank", &c.Rounds: "--rounds"}

	err := c.Check()
	fmt.Println(err)
	var e *setting.Error
	if errors.As(err, &e) {
		for _, field := range e.Pointers(c) {
			fmt.Printf("%s is %v, want %s\n", flags[field], e.Got, e.Want)
		}
	}
	// Output:
	// mine: Config.Rank is 1000, want 1 … 100
	// --rank is 1000, want 1 … 100
}
