package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
)

// Settings say what a task trains, and on what data if they are to be
// generated. They are a pointer to a struct that goes through JSON unharmed.
type Settings interface {
	// Name is the name of the task, a word.
	Name() string
	// Epochs is how many are trained if nobody says.
	Epochs() int
	// Check says what is wrong with the settings, other than with the data. It
	// is cheap.
	Check() error
	// Load checks the settings and reads or generates the data.
	Load(Setup) (Task, error)
}

// Generated are settings that can generate data of any skew, for comparisons.
type Generated interface {
	Settings
	// Generate has Load generate data in which popularity follows Zipf's law
	// with an exponent, other data for each seed.
	Generate(exponent float64, seed uint64)
}

// A Setup is what Load is told beside the settings.
type Setup struct {
	// Data is the file or folder of the data; empty: they are generated.
	Data string
	// Seed decides the order of the data and what trainers draw.
	Seed uint64
	// Few, if not 0, has Evaluate judge the model on so many items at the most,
	// by one worker of each node: enough to compare runs by, and quickly done.
	Few int
}

// A Task is a task whose data are there. It is immutable, and may be used by any
// number of nodes of a process.
type Task interface {
	// Fingerprint stands for settings and data.
	Fingerprint() string
	// Data is a fingerprint of the data: equal for equal ones.
	Data() string
	// About is a line about the data, for people.
	About() string
	// Doubts are what in the data may make the model or its figures mean less than
	// they seem to, a sentence each. Generated data leave none.
	Doubts() []string
	// Unit is what an item of the data is called, in the plural, and how many
	// examples of a loss each makes.
	Unit() (name string, examples int64)
	// Tables make the model, with their Hot set.
	Tables() []godwit.Table
	// Samplers are those of the run, by the index that the trainers use.
	Samplers() []sampling.Spec
	// Train trains on all nodes, and adds to seen the examples as they go.
	Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error)
	// Test judges the model on the data held out for the end, or, where part
	// is set, on so many of them as are judged quickly. All nodes call it, each
	// time with another name.
	Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error)
	// Export writes the model's files to an export, and describes them and the kind
	// of model.
	Export(ctx context.Context, w godwit.Worker, s *export.Set) error
}

var kinds = map[string]func() Settings{}

// register makes a task known. It is called by init functions, with what
// returns new default settings.
func register(defaults func() Settings) { kinds[defaults().Name()] = defaults }

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
