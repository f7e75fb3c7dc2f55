package job

import (
	"encoding/json"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// An Event tells what happened in a run. Its kind is what is set, beside the
// run, the policy and the time; as JSON it is a line of "godwit … --json".
type Event struct {
	Run     string    `json:"run"`
	Policy  string    `json:"policy"`
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // since the run was begun

	Waiting    *Waiting    `json:"waiting,omitempty"`
	Start      *Start      `json:"start,omitempty"`
	Tick       *Tick       `json:"tick,omitempty"`
	Epoch      *Epoch      `json:"epoch,omitempty"`
	Evaluation *Evaluation `json:"evaluation,omitempty"`
	Stopping   string      `json:"stopping,omitempty"` // why an early end was asked for
	Result     *Result     `json:"result,omitempty"`
}

// Waiting says that the run can be joined.
type Waiting struct {
	Endpoints []string `json:"endpoints"` // of etcd
	// Token is what nodes must give there, if it was made for this run; empty: who
	// began the run knows it, if there is one.
	Token string `json:"token,omitempty"`
	Nodes int    `json:"nodes"` // that have to come from elsewhere
}

// Start says that all nodes are there.
type Start struct {
	Self  godwit.NodeID `json:"self"` // the node that tells
	Nodes []Peer        `json:"nodes"`
	Data  string        `json:"data"` // a line about them
	Unit  string        `json:"unit"` // what their items are called
	// Fingerprint is equal for equal data.
	Fingerprint string `json:"fingerprint"`
	// Spec is what was asked for: the task and its settings, nodes, seed and so on.
	Spec    json.RawMessage `json:"spec"`
	Version string          `json:"version"` // of this program
	// Warnings are what a person must hear of, a sentence each: what in the data may
	// make the model or its figures mean less than they seem to, and other things.
	Warnings []string `json:"warnings,omitempty"`
}

// A Peer is a node, as the others know it.
type Peer struct {
	ID      godwit.NodeID `json:"id"`
	Addr    string        `json:"addr"`
	Host    string        `json:"host"`
	PID     int           `json:"pid"`
	Workers int           `json:"workers"`
}

// A Tick is what a node did since the last tick.
type Tick struct {
	Items   int64      `json:"items"` // of the data
	Seconds float64    `json:"seconds"`
	Stats   node.Stats `json:"stats"`
}

// An Epoch is one that ended. Its stats are those of all nodes for this epoch.
type Epoch struct {
	Epoch   int        `json:"epoch"`
	Of      int        `json:"of"`
	Loss    float64    `json:"loss"`    // mean
	Items   int64      `json:"items"`   // of the data, trained by all nodes
	Seconds float64    `json:"seconds"` // it took
	Stats   node.Stats `json:"stats"`
}

// An Evaluation judges the model: after an epoch, or before the first one if
// Epoch is 0.
type Evaluation struct {
	Epoch    int       `json:"epoch"`
	Metrics  Judgement `json:"metrics"`
	Warnings []string  `json:"warnings,omitempty"`
}

// A Result is what came of a run.
type Result struct {
	Policy  string    `json:"policy"`
	Nodes   int       `json:"nodes"`
	Workers int       `json:"workers"` // of all nodes
	Epochs  int       `json:"epochs"`  // trained; the last one in part if End says that the run was stopped
	End     train.End `json:"end"`
	// Reason is why the run was stopped early, where it was.
	Reason string `json:"reason,omitempty"`
	// Test judges the model on the data held out for the end, and Untrained
	// judged it before training.
	Test      Metrics `json:"test"`
	Untrained Metrics `json:"untrained,omitempty"`
	// TrainSeconds is the time of the epochs, Seconds that of everything.
	TrainSeconds float64 `json:"train_seconds"`
	Seconds      float64 `json:"seconds"`
	// NoMessage is the share of accesses that needed no message and no waiting.
	NoMessage float64 `json:"no_message"`
	// Stats are what all nodes did during the epochs, and the most that they
	// held at the end of one.
	Stats node.Stats `json:"stats"`
	// Exported is the folder that this node wrote the model to.
	Exported string `json:"exported,omitempty"`
	// ExportError is why that is not the folder that it should be: the disk was full,
	// say. The model is in Exported then; if that is empty, it is lost.
	ExportError string `json:"export_error,omitempty"`
}

// Interrupted reports whether the run was stopped before its end.
func (r *Result) Interrupted() bool { return r.End == train.Stopped }

func seconds(from time.Time) float64 { return time.Since(from).Seconds() }
