package experiment

import (
	"time"

	"github.com/godwit-ps/godwit/node"
)

// A Row is what a run came to. Counts are sums over all nodes. Of training
// they are those of the epochs that Lab.Epochs says; what evaluating the model
// costs counts nowhere.
type Row struct {
	Network string `json:"network"`
	Policy  string `json:"policy"`
	Scheme  string `json:"scheme,omitempty"` // of sampling, where it is compared
	// Task and Setting are of "best": what was trained, and what the policy was given, with
	// which it was the fastest.
	Task    string `json:"task,omitempty"`
	Setting string `json:"setting,omitempty"`
	// Tried is how many settings were tried, Step what a step computed, of "sketch" as well, and Target the
	// quality that the row is timed to, which is another one for each seed: the median.
	Tried  int           `json:"tried,omitempty"`
	Step   time.Duration `json:"step_ns,omitempty"`
	Target float64       `json:"target,omitempty"`
	// Over is of adaptive's rows, beside the best of the others.
	Over    *Over   `json:"over,omitempty"`
	Nodes   int     `json:"nodes"`
	Workers int     `json:"workers"` // of each node
	Zipf    float64 `json:"zipf"`    // of generated data; 0 where it is read
	Offset  int     `json:"offset,omitempty"`
	// Epoch is the virtual time of an epoch, or of all of "timing".
	Epoch   time.Duration `json:"epoch_ns"`
	Speedup float64       `json:"speedup,omitempty"` // over one node
	Loss    float64       `json:"loss,omitempty"`    // of the last epoch, an example
	Quality float64       `json:"quality,omitempty"` // after the last epoch
	// Metric and LowerIsBetter are of "best", whose rows are of several tasks: what Quality is.
	// Of others the Report has them.
	Metric        string `json:"metric,omitempty"`
	LowerIsBetter bool   `json:"lower_is_better,omitempty"`
	// ToTarget is the time until the quality of Report.Target; 0 if it was not
	// reached. Effective is how many times sooner than at one node that was.
	ToTarget  time.Duration `json:"to_target_ns,omitempty"`
	Effective float64       `json:"effective_speedup,omitempty"`
	// Diverged says that the loss became infinite or no number, which ended
	// the run.
	Diverged bool `json:"diverged,omitempty"`
	// Curve is how training went, a point an epoch.
	Curve []Point `json:"curve,omitempty"`
	// Shares of accesses.
	NoMessage float64 `json:"no_message"`
	Remote    float64 `json:"remote"`
	Replica   float64 `json:"replica"`

	BytesPerAccess float64 `json:"bytes_per_access"` // sent
	// ComputedPerItem is the processor time of all nodes for an item of the data, and
	// BytesPerItem what they sent for it.
	ComputedPerItem time.Duration `json:"computed_per_item_ns,omitempty"`
	BytesPerItem    float64       `json:"bytes_per_item,omitempty"`
	Accesses        uint64        `json:"accesses"`
	Moves           uint64        `json:"moves"`
	Copies          uint64        `json:"copies"` // replicas set up
	Drops           uint64        `json:"drops"`
	Deltas          uint64        `json:"deltas"`
	Refreshes       uint64        `json:"refreshes"`
	Rounds          uint64        `json:"rounds"`
	// Replicas is how many there are: the mean over the ends of epochs other than
	// the last, or in "timing" over the run.
	Replicas float64 `json:"replicas"`
	Window   int64   `json:"window"`  // the widest of a worker, in clocks; 0 with timing off
	LeadMs   float64 `json:"lead_ms"` // from asking for a key to its arrival
	// SentBytes are those of all nodes, or of a pass of "delay".
	SentBytes uint64 `json:"sent_bytes"`
	// Waiting is the share of the workers' time that they waited in calls.
	Waiting float64 `json:"waiting"`

	// Of "delay": how many blocks may be under way, and how many passes it took
	// to the objective, for which ToTarget is the time and Effective the speed-up
	// over no delay.
	Delay  int     `json:"delay,omitempty"`
	Passes int     `json:"passes,omitempty"`
	Spread float64 `json:"spread,omitempty"` // of simulated steps, as a share

	// Of "filters": what ran with which filters, the bytes that lists of keys saved
	// that were sent before, how many times fewer bytes it sent than with no filter,
	// and than a plain encoding would, by how much (a share) the last epoch's loss
	// differs from that with none, and whether the model is the same, bit for bit.
	Program   string  `json:"program,omitempty"`
	Filters   string  `json:"filters,omitempty"`
	ListSaved uint64  `json:"list_saved,omitempty"`
	Less      float64 `json:"less,omitempty"`
	ThanPlain float64 `json:"than_plain,omitempty"`
	Change    float64 `json:"change,omitempty"`
	Same      bool    `json:"same,omitempty"`

	// Of "sketch": items added at once, inserts a second, and estimates that are
	// smaller than the count, of which there are none.
	Batch          int     `json:"batch,omitempty"`
	Inserts        float64 `json:"inserts_per_second,omitempty"`
	BytesPerInsert float64 `json:"bytes_per_insert,omitempty"`
	TooSmall       int     `json:"too_small,omitempty"`

	// Range is of runs with other seeds; nil where there are none.
	Range *Range `json:"range,omitempty"`
	// Messages is how many records were handled in all.
	Messages uint64 `json:"messages"`

	plain         float64 // bytes of a plain encoding
	metric        string  // what Quality is
	lowerIsBetter bool
}

// A Point is the state of training at the end of an epoch.
type Point struct {
	// Seconds are those of training since the start, virtual on simulated nodes, and
	// until the updates of the epoch were visible everywhere.
	Seconds float64 `json:"seconds"`
	Loss    float64 `json:"loss"` // of the epoch
	Quality float64 `json:"quality"`
}

// count takes in what nodes did.
func (r *Row) count(did node.Stats) {
	share := func(n uint64) float64 { return float64(n) / float64(max(did.Accesses(), 1)) }
	r.Accesses, r.NoMessage = did.Accesses(), share(did.Local+did.Replica)
	r.Remote, r.Replica = share(did.Remote), share(did.Replica)
	r.BytesPerAccess, r.SentBytes = share(did.SentBytes), did.SentBytes
	r.Moves, r.Copies, r.Drops = did.Moves, did.Copies, did.Drops
	r.Deltas, r.Refreshes, r.Rounds = did.Deltas, did.Refreshes, did.Rounds
	r.Replicas, r.Window, r.LeadMs = float64(did.Replicas), did.Window, did.LeadMs
}

// target is the quality that runs are timed to: nine tenths of the best that a
// run had, or, of an error, the best by nine tenths.
func target(one *Row, lowerIsBetter bool) float64 {
	best := 0.0
	for i, p := range one.Curve {
		if i == 0 || reached(p.Quality, best, lowerIsBetter) {
			best = p.Quality
		}
	}
	if lowerIsBetter {
		return best / part
	}
	return best * part
}

const part = 0.9

func reached(quality, target float64, lowerIsBetter bool) bool {
	return quality == target || quality < target == lowerIsBetter
}

// reach sets when the run reached a quality. Between two epochs it is taken to
// change evenly.
func (r *Row) reach(target float64, lowerIsBetter bool) {
	for i, p := range r.Curve {
		if !reached(p.Quality, target, lowerIsBetter) {
			continue
		}
		s := p.Seconds
		if i > 0 {
			last := r.Curve[i-1]
			s = last.Seconds + (p.Seconds-last.Seconds)*(target-last.Quality)/(p.Quality-last.Quality)
		}
		r.ToTarget = time.Duration(s * float64(time.Second))
		return
	}
}

// compare sets what the run is beside one node's.
func (r *Row) compare(one *Row) {
	r.Speedup = float64(one.Epoch) / float64(r.Epoch)
	if one.ToTarget > 0 && r.ToTarget > 0 {
		r.Effective = float64(one.ToTarget) / float64(r.ToTarget)
	}
}
