package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
)

// Settings say what a task trains, and on what data if they are to be
// generated. They are a pointer to a struct that JSON encodes without loss.
type Settings interface {
	// Name is the name of the task, a word.
	Name() string
	// Epochs is the default number of epochs.
	Epochs() int
	// Check returns what is wrong with the settings, apart from the data. It is cheap.
	Check() error
	// Load checks the settings and reads or generates the data.
	Load(Setup) (Task, error)
}

// Generated are settings that can generate data of any skew, for comparisons.
type Generated interface {
	Settings
	// Generate makes Load generate data in which popularity follows Zipf's law with an
	// exponent. Each seed gives other data.
	Generate(exponent float64, seed uint64)
}

// Settled are settings of which some may be left open, for what suits the others.
type Settled interface {
	Settings
	// Settled gives what is open the value that it had in a run in which a table had an update rule, by its name with
	// parameters. Tables and rules that say nothing of it are passed over.
	Settled(table, rule string)
	// Open returns the names of the settings that are left open still: they have the values that suit in this program.
	Open() []string
}

// Partial are settings of which some have no effect beside others, or on some data. A command refuses their flags, as
// who gives one believes that it has an effect.
type Partial interface {
	Settings
	// Unused returns the settings without effect where the data are read at a path, or are generated if it is empty.
	// It is cheap. Data that cannot be read leave no setting unused: Load tells of them.
	Unused(data string) []Unused
}

// Unused is settings that have no effect.
type Unused struct {
	// Why is a sentence without its end, such as "the examples are generated".
	Why string
	// Fields are pointers to them. A pointer to a struct stands for all its fields.
	Fields []any
}

// unusedData returns which settings are unused because data are read, or are not.
func unusedData(data string, generated, read []any) []Unused {
	if data == "" {
		return []Unused{{"it says how data are read, and without --data they are generated", read}}
	}
	return []Unused{{"it describes generated data, and --data names others", generated}}
}

// open returns the name of a setting if it is left open.
func open(name string, value float32) []string {
	if value != 0 {
		return nil
	}
	return []string{name}
}

// settle gives a rate that was left open that of an update rule, if it has one.
func settle(lr *float32, rule string) {
	if x, ok := optim.RateOf(rule); ok && *lr == 0 {
		*lr = x
	}
}

// A Setup is what Load needs besides the settings.
type Setup struct {
	// Data is the file or folder of the data; empty: they are generated.
	Data string
	// Seed decides the order of the data and what trainers draw.
	Seed uint64
	// MaxEvalItems, if not 0, bounds the items that Evaluate evaluates the model on; one
	// worker of each node does it. That takes little time and suffices to compare runs.
	MaxEvalItems int
}

// A Task is a task with its data. It is immutable, and may be used by any
// number of nodes of a process.
type Task interface {
	// Fingerprint identifies settings and data.
	Fingerprint() string
	// Data is a fingerprint of the data, equal for equal data.
	Data() string
	// Summary is a line about the data, for people.
	Summary() string
	// Warnings are properties of the data that may spoil the model or make its metrics
	// misleading, a sentence each. Generated data have none.
	Warnings() []string
	// Unit is the name of an item of the data, in the plural, and how many examples of
	// the loss each item makes.
	Unit() (name string, examples int64)
	// Tables make the model, with their Hot set.
	Tables() []godwit.Table
	// Samplers are those of the run, by the index that the trainers use.
	Samplers() []sampling.Spec
	// Train trains on all nodes, and adds trained examples to seen meanwhile.
	Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error)
	// Test evaluates the model on the data held out for the end, or, where part
	// is set, on so many of them as take little time. All nodes call it, each
	// time with another name.
	Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error)
	// Export writes the model's files to an export, and describes them and the kind
	// of model.
	Export(ctx context.Context, w godwit.Worker, s *export.Set) error
}

// Unvalidated is implemented by tasks whose data can come without a part to validate on.
type Unvalidated interface {
	// Unvalidated reports whether evaluations while training use the test data, as there are none to validate on.
	Unvalidated() bool
}

var kinds = map[string]func() Settings{}

// Register registers a task under the name of its settings, for [New] and [Decode], by
// which all nodes of a run find it. Init functions call it with a function that returns
// new default settings. It panics if these are not a pointer to a struct that JSON
// encodes without loss, if their name is not of lower case letters, digits and dashes,
// or if the name is taken.
func Register(defaults func() Settings) {
	if err := check(defaults); err != nil {
		panic("task: Register: " + err.Error())
	}
	kinds[defaults().Name()] = defaults
}

// check returns why settings cannot be registered; nil if they can.
func check(defaults func() Settings) error {
	if defaults == nil {
		return errors.New("the function that returns settings is nil")
	}
	s := defaults()
	if t := reflect.TypeOf(s); s == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || reflect.ValueOf(s).IsNil() {
		return fmt.Errorf("the settings are %T, want a pointer to a struct", s)
	}
	name := s.Name()
	if !word.MatchString(name) {
		return fmt.Errorf("a task is called %q, want lower case letters, digits and dashes, a letter first", name)
	}
	if _, taken := kinds[name]; taken {
		return fmt.Errorf("there is a task %q already, give this one another name", name)
	}
	if t := reflect.TypeOf(s).Elem(); t.Size() > 0 && s == defaults() {
		return fmt.Errorf("task %s: the function returns the same settings twice, want new ones each time", name)
	}
	return travel(s, defaults)
}

var word = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// travel returns an error if settings cannot be sent to another node and read there.
func travel(s Settings, defaults func() Settings) error {
	sent, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("task %s: its settings cannot be sent to other nodes: %w", s.Name(), err)
	}
	other := defaults()
	d := json.NewDecoder(bytes.NewReader(sent))
	d.DisallowUnknownFields()
	if err := d.Decode(other); err != nil {
		return fmt.Errorf("task %s: other nodes cannot read its settings, %s: %w", s.Name(), sent, err)
	}
	return nil
}

// Names are the names of all tasks, in order.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// New returns the default settings of a task.
func New(name string) (Settings, error) {
	defaults, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("no task %q, there are %s", name, strings.Join(Names(), ", "))
	}
	return defaults(), nil
}

// Decode reads settings of a task from JSON. A field that it does not know is an
// error; one that is missing has its default.
func Decode(name string, b []byte) (Settings, error) {
	s, err := New(name)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	return s, nil
}
