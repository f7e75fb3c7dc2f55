package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// A Spec describes a run of a task: what all its nodes must agree on. Start from
// [Default]. As JSON it is what the first node leaves for the others.
type Spec struct {
	// Task is what is trained: "kge", knowledge-graph embeddings.
	Task string `json:"task"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Workers is the number of workers of each node. 0 leaves it to the nodes:
	// as many as their machine has cores.
	Workers int `json:"workers"`
	// Policy is the name of a policy of package placement.
	Policy string `json:"policy"`
	// Seed decides initial values, samples, and the order of the data.
	Seed uint64 `json:"seed"`
	// Sampling is the name of a scheme of package sampling, for the negatives.
	Sampling string `json:"sampling"`
	// Options say how long to train.
	Options train.Options `json:"options"`

	// Data is the folder of the graph; empty: one is generated from Graph.
	Data  string       `json:"data,omitempty"`
	Graph triples.Spec `json:"graph"`
	// KGE holds the settings of the task "kge". Its Seed and Sampler are set
	// by the job.
	KGE kge.Config `json:"kge"`
	// Untrained has the model judged before training too, on at most
	// [UntrainedTriples] triples.
	Untrained bool `json:"untrained"`

	// TTL is after how long without a sign of life a node counts as lost.
	TTL time.Duration `json:"ttl"`
	// Join is how long the nodes wait for each other at the start.
	Join time.Duration `json:"join"`
}

// UntrainedTriples bounds what a model is judged on before it is trained: that
// figure is only there to be compared with.
const UntrainedTriples = 1000

// Default describes a run of one node that trains on a generated graph.
func Default() Spec {
	return Spec{
		Task: "kge", Nodes: 1, Policy: placement.Adaptive.Name(), Seed: 1, Sampling: sampling.Prepared{}.Name(),
		Options: train.Options{Epochs: 15}, Graph: triples.DefaultSpec(), KGE: kge.DefaultConfig(), Untrained: true,
		TTL: coord.DefaultTTL, Join: coord.DefaultJoin,
	}
}

// Check says what is wrong with the spec, other than with the data.
func (s *Spec) Check() error {
	switch {
	case s.Task != "kge":
		return fmt.Errorf("job: no task %q, there is kge", s.Task)
	case s.Nodes < 1 || s.Nodes > godwit.MaxNodes:
		return fmt.Errorf("job: %d nodes, want 1 … %d", s.Nodes, godwit.MaxNodes)
	case s.Workers < 0:
		return fmt.Errorf("job: %d workers a node, want at least 1, or 0 for one a core", s.Workers)
	case s.TTL < time.Second:
		return fmt.Errorf("job: a TTL of %v, want at least 1s", s.TTL)
	case s.Join <= 0:
		return errors.New("job: no time to wait for the other nodes")
	}
	if err := s.Options.Check(); err != nil {
		return err
	}
	if _, err := placement.ByName(s.Policy); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if _, err := sampling.SchemeNamed(s.Sampling); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	return s.checkKGE()
}

// Encode writes the spec for the other nodes.
func (s *Spec) Encode() ([]byte, error) { return json.Marshal(s) }

// Decode reads what Encode wrote and checks it. A field that it does not know is
// an error: it would be a setting in which the nodes differ.
func Decode(b []byte) (Spec, error) {
	var s Spec
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("job: the run's description cannot be read (%w); do all nodes run the same version?", err)
	}
	return s, s.Check()
}
