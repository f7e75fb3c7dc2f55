package record

import (
	"encoding/json"
	"math"
	"time"

	"github.com/godwit-ps/godwit"
)

// An About is the first line of a file of events.
type About struct {
	Format  string `json:"format"`  // "godwit-events"
	Version int    `json:"version"` // of the format
	Run     string `json:"run"`     // name of the run
	Policy  string `json:"policy"`  // of the run
}

// An Event tells what happened in a run. What is set says what.
type Event struct {
	Time    time.Time `json:"time"`    // when it happened, by the clock of whoever leads the run
	Seconds float64   `json:"seconds"` // since the run was begun

	Start      *Start      `json:"start,omitempty"`      // all nodes are there
	Epoch      *Epoch      `json:"epoch,omitempty"`      // one ended
	Evaluation *Evaluation `json:"evaluation,omitempty"` // the model was evaluated
	Checkpoint string      `json:"checkpoint,omitempty"` // the place of one that was written
	Warning    string      `json:"warning,omitempty"`    // what a person should hear of
	Stopping   string      `json:"stopping,omitempty"`   // why an early end was asked for
	End        *End        `json:"end,omitempty"`        // the run is over
}

// A Start says what is trained, and by whom.
type Start struct {
	Task   string          `json:"task"`   // its name
	Unit   string          `json:"unit"`   // what its items are called
	Data   string          `json:"data"`   // a line about them
	Epochs int             `json:"epochs"` // asked for
	Nodes  []Member        `json:"nodes"`  // all, by number
	Spec   json.RawMessage `json:"spec"`   // all that was asked for
}

// A Member is a node of the run.
type Member struct {
	ID      godwit.NodeID `json:"id"`      // its number
	Host    string        `json:"host"`    // the name of its machine
	PID     int           `json:"pid"`     // its process, on that machine
	Workers int           `json:"workers"` // how many it has
	Addr    string        `json:"addr"`    // host:port at which others reach it
}

// An Epoch is one that ended.
type Epoch struct {
	Epoch   int     `json:"epoch"`   // its number, from 1 on
	Of      int     `json:"of"`      // how many were asked for
	Loss    Figure  `json:"loss"`    // mean
	Items   int64   `json:"items"`   // trained by all nodes
	Seconds float64 `json:"seconds"` // it took
}

// An Evaluation is one of the model.
type Evaluation struct {
	Epoch         int      `json:"epoch"`                     // after which; 0: before the first
	Metrics       []Metric `json:"metrics"`                   // the most important first
	LowerIsBetter bool     `json:"lower_is_better,omitempty"` // a lower first metric is better
}

// A Metric is a figure of the model's quality.
type Metric struct {
	Split string `json:"split"` // of the data
	Name  string `json:"name"`  // as in results
	Value Figure `json:"value"` // the figure
}

// An End is that of the run.
type End struct {
	Reason  string   `json:"reason"`            // why it ended where it did
	Error   string   `json:"error,omitempty"`   // of a run that failed
	Epochs  int      `json:"epochs"`            // trained
	Seconds float64  `json:"seconds"`           // the time of the epochs
	Metrics []Metric `json:"metrics,omitempty"` // of the evaluation at the end
}

// A Figure is a number that may be none: as JSON that is null.
type Figure float64

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	if x := float64(f); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var x *float64
	err := json.Unmarshal(b, &x)
	*f = Figure(math.NaN())
	if x != nil {
		*f = Figure(*x)
	}
	return err
}
