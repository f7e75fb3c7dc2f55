package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
)

// patient returns the store of the run's checkpoints for what training may wait for: a checkpoint fails then, instead of holding up training, or the
// end of a run, for ever.
func (p *part) patient(s checkpoint.Store) checkpoint.Store {
	return checkpoint.Patient(s, p.cfg.patience())
}

// patience is how long a store may take.
func (c *NodeConfig) patience() time.Duration { return cmp.Or(c.storePatience, checkpoint.Patience) }

// openPlace is [checkpoint.OpenPlace], of a store that may take so long for one thing.
func openPlace(ctx context.Context, place string, limit time.Duration) (*checkpoint.Checkpoint, error) {
	s, number, err := checkpoint.StoreAt(ctx, place)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, checkpoint.Patient(s, limit), number)
}

// waiting warns that training waits for a cut at the end of an epoch, and for the part of which nodes.
func (p *part) waiting(cut uint64, late []int, waits time.Duration) {
	what, who := "the evaluation before it", "the leader has not ended it"
	if p.spec.Checkpoint != "" {
		what = fmt.Sprintf("checkpoint %d at %s", cut, p.spec.Checkpoint)
	}
	switch list := strings.Trim(strings.ReplaceAll(fmt.Sprint(late), " ", ", "), "[]"); {
	case len(late) == 1:
		who = "node " + list + " has not ended its part"
	case len(late) > 1:
		who = "nodes " + list + " have not ended their parts"
	}
	p.emit(Event{Warning: fmt.Sprintf("at the end of an epoch, training has waited %v for %s: %s. A place or node that does not answer, or is slow, holds it up",
		waits.Round(time.Second), what, who)})
}
