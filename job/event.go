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
	Run     string    `json:"run"`     // its name
	Policy  string    `json:"policy"`  // the name of the run's policy
	Time    time.Time `json:"time"`    // when it happened
	Seconds float64   `json:"seconds"` // since the run was begun

	Waiting    *Waiting    `json:"waiting,omitempty"`    // the run can be joined
	Start      *Start      `json:"start,omitempty"`      // all nodes are there
	Tick       *Tick       `json:"tick,omitempty"`       // now and then, within an epoch
	Epoch      *Epoch      `json:"epoch,omitempty"`      // an epoch ended
	Evaluation *Evaluation `json:"evaluation,omitempty"` // the model was evaluated
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"` // one was written, or could not be
	Warning    string      `json:"warning,omitempty"`    // what a person should hear of, and the run goes on
	Stopping   string      `json:"stopping,omitempty"`   // why an early end was asked for
	Failed     *Failed     `json:"failed,omitempty"`     // training ended by an error
	Restart    *Restart    `json:"restart,omitempty"`    // a node was lost, and a run with the others begins
	Result     *Result     `json:"result,omitempty"`     // the run ended well; the last event
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
	Self  godwit.NodeID `json:"self"`  // the node that emits this
	Nodes []Peer        `json:"nodes"` // all, by number
	Data  string        `json:"data"`  // a line about them
	Unit  string        `json:"unit"`  // what their items are called
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
	ID      godwit.NodeID `json:"id"`      // its number
	Addr    string        `json:"addr"`    // host:port at which others reach it
	Host    string        `json:"host"`    // the name of its machine
	PID     int           `json:"pid"`     // its process, on that machine
	Workers int           `json:"workers"` // how many it has
}

// A Tick is what a node did since the last tick.
type Tick struct {
	Items   int64      `json:"items"`   // of the data
	Seconds float64    `json:"seconds"` // since the last tick
	Stats   node.Stats `json:"stats"`   // since the last tick
}

// An Epoch is one that ended. Its stats are those of all nodes for this epoch.
type Epoch struct {
	Epoch   int        `json:"epoch"`   // its number, from 1 on
	Of      int        `json:"of"`      // how many the run lasts, if it does not end early
	Loss    float64    `json:"loss"`    // mean
	Items   int64      `json:"items"`   // of the data, trained by all nodes of this run
	Seconds float64    `json:"seconds"` // it took
	Stats   node.Stats `json:"stats"`   // of all nodes
}

// An Evaluation is one of the model: after an epoch, or before the first one if
// Epoch is 0. It may come while the next epoch is trained.
type Evaluation struct {
	Epoch    int          `json:"epoch"`              // after which; 0: before the first
	Metrics  SplitMetrics `json:"metrics"`            // by the parts of the data
	Warnings []string     `json:"warnings,omitempty"` // what a person must hear of, a sentence each
	// LowerIsBetter says that a lower first metric is better, as of an error.
	LowerIsBetter bool `json:"lower_is_better,omitempty"`
}

// A Checkpoint is one that was written.
type Checkpoint struct {
	Place   string  `json:"place"`            // with its number, as [Spec].Resume takes it
	Number  uint64  `json:"number"`           // 1, 2, …
	Epoch   int     `json:"epoch"`            // the last one that was trained whole before it
	Within  int     `json:"within,omitempty"` // the epoch that was under way; 0: none
	Items   int64   `json:"items"`            // of the data, trained before it, each as often as it was
	Rows    uint64  `json:"rows"`             // written
	Bytes   int64   `json:"bytes"`            // of all files
	Seconds float64 `json:"seconds"`          // until it was complete, while training went on
	// Error is why it could not be written; then the former one is the last. The run goes on.
	Error string `json:"error,omitempty"`
	// GivenUp says that nothing has failed: Error is why it had to give way, and a later one has all that it would have had.
	GivenUp bool `json:"given_up,omitempty"`
}

// A Failed says that training ended by an error.
type Failed struct {
	Error string `json:"error"` // why
	// Items is how many of the data were trained when it ended, by all nodes, each as often as it was. In the epoch under way, the workers
	// of other nodes are taken to have trained as many as those of this node.
	Items int64 `json:"items"`
}

// A Restart says that a run goes on by itself, with a node less if one was lost.
type Restart struct {
	Attempt int    `json:"attempt"`        // 1, 2, …
	Of      int    `json:"of"`             // how many there may be
	Nodes   int    `json:"nodes"`          // of the run that begins
	From    string `json:"from,omitempty"` // the checkpoint; empty: from the beginning
	Again   int64  `json:"again"`          // items of the data that were trained behind it, about, and are trained again
}

// A Result is what came of a run.
type Result struct {
	Policy  string    `json:"policy"`  // its name
	Nodes   int       `json:"nodes"`   // how many
	Workers int       `json:"workers"` // of all nodes
	Epochs  int       `json:"epochs"`  // trained; the last one in part if End says that the run was stopped
	End     train.End `json:"end"`     // why no more
	// Reason is why the run was stopped early, where it was.
	Reason string `json:"reason,omitempty"`
	// Test is the evaluation on the data held out for the end.
	Test Metrics `json:"test"`
	// Best is the epoch of the model that was evaluated and exported, where a checkpoint of a better model than the
	// last one was there; else 0.
	Best int `json:"best,omitempty"`
	// Untrained is the evaluation before training; empty unless Spec.Untrained asks for it.
	Untrained Metrics `json:"untrained,omitempty"`
	// TrainSeconds is the time of the epochs, in seconds.
	TrainSeconds float64 `json:"train_seconds"`
	// Seconds is the time of everything.
	Seconds float64 `json:"seconds"`
	// NoMessage is the share of accesses that needed no message and no waiting.
	NoMessage float64 `json:"no_message"`
	// Waiting is the share of the workers' time in the epochs in which they waited, in calls of any kind: for what is elsewhere, for each
	// other, for the end of what they had begun.
	Waiting float64 `json:"waiting"`
	// Stats are what all nodes did during the epochs, and the most that they
	// held at the end of one.
	Stats node.Stats `json:"stats"`
	// Exported is the folder that this node wrote the model to.
	Exported string `json:"exported,omitempty"`
	// ExportError is why that is not the folder that it should be: the disk was full,
	// say. The model is in Exported then; if that is empty, it is lost.
	ExportError string `json:"export_error,omitempty"`
	// ProfileError is why this node, or at the leader any node, could not write the profile of its training, or not all of it.
	ProfileError string `json:"profile_error,omitempty"`
	// CheckpointError is why nothing keeps the model, of a run that was to keep it in checkpoints only and was not
	// interrupted: that of its end could not be written.
	CheckpointError string `json:"checkpoint_error,omitempty"`
}

// Interrupted reports whether the run was stopped before its end.
func (r *Result) Interrupted() bool { return r.End == train.Stopped }

// sum says what follows from the statistics, at the end of a run that began at a time.
func (r *Result) sum(begin time.Time) {
	r.NoMessage, r.Seconds = r.Stats.NoMessage(), seconds(begin)
	if all := float64(r.Workers) * r.TrainSeconds; all > 0 {
		r.Waiting = min(1, r.Stats.Waited.Seconds()/all)
	}
}

func seconds(from time.Time) float64 { return time.Since(from).Seconds() }
