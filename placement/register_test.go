package placement

import (
	"fmt"
	"strings"
	"testing"
)

type called struct {
	static
	name string
}

func (c called) Name() string { return c.name }

func TestOnlyPoliciesWithNamesOfTheirOwnAreRegistered(t *testing.T) {
	for name, want := range map[string]string{
		"adaptive":        `there is a policy "adaptive" already`,
		"nonuniform":      `there is a policy "nonuniform" already`,
		"":                `called ""`,
		"two words":       "letters, digits and dashes",
		"9lives":          "letter first",
		"mine(factor=20)": "with default parameters",
	} {
		if said := panicOf(func() { Register(called{name: name}) }); !strings.Contains(said, want) {
			t.Errorf("a policy called %q: %q, want %q", name, said, want)
		}
	}
	if said := panicOf(func() { Register(nil) }); !strings.Contains(said, "nil") {
		t.Errorf("no policy: %q", said)
	}
}

func panicOf(f func()) (said string) {
	defer func() { said = fmt.Sprint(recover()) }()
	f()
	return said
}
