package task

import (
	"fmt"
	"strings"
	"testing"
)

// called are settings of any name.
type called struct {
	Sketch
	name string
}

func (c *called) Name() string { return c.name }

// closed cannot be sent.
type closed struct {
	Sketch
	Done chan int
}

func (*closed) Name() string { return "closed" }

// moody come as JSON that they cannot read.
type moody struct{ Sketch }

func (*moody) Name() string                 { return "moody" }
func (*moody) MarshalJSON() ([]byte, error) { return []byte(`{"Mood": "low"}`), nil }

// plain are no pointer.
type plain struct{ *Sketch }

func TestOnlyTasksWithSettingsThatTravelAreRegistered(t *testing.T) {
	one := &called{name: "one"}
	for want, defaults := range map[string]func() Settings{
		`there is a task "kge" already`:             func() Settings { return &called{name: "kge"} },
		`called ""`:                                 func() Settings { return &called{} },
		`called "two words"`:                        func() Settings { return &called{name: "two words"} },
		`called "CTR"`:                              func() Settings { return &called{name: "CTR"} },
		"are <nil>":                                 func() Settings { return nil },
		"are *task.called, want":                    func() Settings { return (*called)(nil) },
		"are task.plain, want a pointer":            func() Settings { return plain{DefaultSketch()} },
		"same settings twice":                       func() Settings { return one },
		"closed: its settings cannot be sent":       func() Settings { return &closed{} },
		`cannot read its settings, {"Mood"`:         func() Settings { return &moody{} },
		"the function that returns settings is nil": nil,
	} {
		if said := panicOf(func() { Register(defaults) }); !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}

func panicOf(f func()) (said string) {
	defer func() { said = fmt.Sprint(recover()) }()
	f()
	return said
}
