package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// A Spec describes a run of a task: what all its nodes must agree on. Start from
// [Default]. As JSON it is what the first node leaves for the others.
type Spec struct {
	// Task is what is trained, as a pointer: the settings of one of the tasks of
	// package task. In JSON it is its name, "task", and "settings".
	Task task.Settings `json:"-"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Workers is the number of workers of each node. 0 leaves it to the nodes:
	// as many as their machine has cores.
	Workers int `json:"workers"`
	// Policy is the name of a policy of package placement.
	Policy string `json:"policy"`
	// Filters are those of all tables, as package filter reads them; empty: none.
	Filters string `json:"filters,omitempty"`
	// Staleness is that of the reads of all tables.
	Staleness godwit.Bound `json:"staleness"`
	// Seed decides initial values, samples, and the order of the data.
	Seed uint64 `json:"seed"`
	// Options say how long to train.
	Options train.Options `json:"options"`

	// Data is the file or folder of the data; empty: they are generated as the
	// task's settings say.
	Data string `json:"data,omitempty"`
	// InitFrom is the folder of an export, or the place of a checkpoint, whose model training begins with, where the
	// run is begun; empty: none. Rows are found by their names; others begin as ever.
	// The update rules' states begin as ever, too.
	InitFrom string `json:"init_from,omitempty"`
	// Untrained has the model evaluated before training too, on a part of the data.
	Untrained bool `json:"untrained"`

	// Checkpoint is the place of the run's checkpoints ([checkpoint.OpenStore]), which all nodes must see unless they are Relayed; empty: none
	// are written. They are written while training goes on: when the model is the best so far, at the end, when the run is stopped, and
	// as often as takes a hundredth of the time, at least every 10 minutes.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Keep is how many checkpoints are kept, the last ones; the best one is kept too. 0 is 3.
	Keep int `json:"keep,omitempty"`
	// Temporary says that the checkpoints are there for this run only: they are removed when it has ended well. None is written of
	// the end. It is set where Checkpoint is empty, the leader exports, and all nodes are on its machine: then they are beside the export
	// ([Beside]).
	Temporary bool `json:"temporary,omitempty"`
	// Relayed says that nodes other than the leader do not see the checkpoints: they send it their rows, and get those of the checkpoint that
	// the run goes on from. [Lead] sets it where the checkpoints are beside the export and nodes come from other machines.
	Relayed bool `json:"relayed,omitempty"`
	// Traced says which keys the nodes trace for the leader, as trace.ParseKeys reads it: a node whose folder ([NodeConfig].Trace) the leader does not see, or that
	// has none, sends the leader what it does. Empty: no node does. [Lead] sets it where the leader traces.
	Traced string `json:"traced,omitempty"`
	// Resume is the place of a checkpoint ([checkpoint.OpenPlace]) that the run goes on from; empty: none. It must be of
	// the same task, settings, seed and data ([Resumed]).
	Resume string `json:"resume,omitempty"`
	latest string // the Resume that stands for the last checkpoint of its place ([Resumed] chose it), and not for one that somebody chose; empty: none

	// TTL is after how long without a sign of life a node counts as lost.
	TTL time.Duration `json:"ttl"`
	// Join is how long the nodes wait for each other at the start, and then, at
	// the most, for the connections between them. [Lead] adds several times what
	// loading the data took it.
	Join time.Duration `json:"join"`
}

// Default describes a run of one node that trains a task on generated data.
func Default(t task.Settings) Spec {
	return Spec{
		Task: t, Nodes: 1, Policy: placement.Adaptive.Name(), Seed: 1, Options: train.Options{Epochs: t.Epochs()}, Untrained: true,
		TTL: coord.DefaultTTL, Join: coord.DefaultJoin,
	}
}

// Check returns an error if a field has a value that it cannot have: a *setting.Error
// that names it, where it is a number, and else the error of the package that reads
// it. It does not look at the data.
func (s *Spec) Check() error {
	const of = "job.Spec"
	switch {
	case s.Task == nil:
		return errors.New("job: no task to train")
	case s.Nodes < 1 || s.Nodes > godwit.MaxNodes:
		return setting.Outside(of, "Nodes", s.Nodes, 1, godwit.MaxNodes)
	case s.Workers < 0:
		return setting.Bad(of, "Workers", s.Workers, "at least 1, or 0 for one a core")
	case s.TTL < time.Second || s.TTL > coord.MaxTTL:
		return setting.Outside(of, "TTL", s.TTL, time.Second, coord.MaxTTL)
	case s.Keep < 0:
		return setting.Bad(of, "Keep", s.Keep, "checkpoints to keep, at least 1, or 0 for 3")
	case s.Resume != "" && s.InitFrom != "":
		return errors.New("job: a run goes on from a checkpoint, or begins with a model: choose one of them")
	case s.Join <= 0:
		return setting.Bad(of, "Join", s.Join, "a time to wait for the other nodes")
	}
	if err := s.Options.Check(); err != nil {
		return err
	}
	if _, err := placement.ByName(s.Policy); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if _, err := filter.Parse(s.Filters); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	return s.Task.Check()
}

// load checks the spec, and whether the model can be exported at a place, and reads
// or makes the data. The place's data replace those of the spec where it has any. It returns earlier, with
// ErrInterrupted, if an end is asked for meanwhile, and with the cause if ctx ends.
func (s *Spec) load(ctx context.Context, c *NodeConfig) (task.Task, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := c.probe(s); err != nil {
		return nil, err
	}
	data := c.Data
	if data == "" {
		data = s.Data
	}
	setup := task.Setup{Data: data, Seed: s.Seed}
	return c.unlessStopped(ctx, func() (task.Task, error) { return s.Task.Load(setup) })
}

// What JSON has of a spec beside its plain fields.
type plain Spec
type coded struct {
	Task     string          `json:"task"`
	Settings json.RawMessage `json:"settings"`
	*plain
}

// Encode writes the spec for the other nodes.
func (s *Spec) Encode() ([]byte, error) {
	settings, err := json.Marshal(s.Task)
	if err != nil {
		return nil, err
	}
	return json.Marshal(coded{s.Task.Name(), settings, (*plain)(s)})
}

// Decode reads what Encode wrote and checks it. A field that it does not know is a
// coord.ErrMismatch: it would be a setting in which the nodes differ.
func Decode(b []byte) (Spec, error) {
	s, err := decode(b)
	if err != nil {
		return Spec{}, fmt.Errorf("job: %w: the run's description cannot be read (%w); do all nodes run the same version?", coord.ErrMismatch, err)
	}
	return s, s.Check()
}

func decode(b []byte) (s Spec, err error) {
	c := coded{plain: (*plain)(&s)}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return s, err
	}
	s.Task, err = task.Decode(c.Task, c.Settings)
	return s, err
}
