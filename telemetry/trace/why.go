package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
)

// decisions is how many decisions Explain tells of at the most.
const decisions = 10

// Decisions returns the decisions of the life, those of all nodes in the order of time as the nodes' clocks have it.
func (l *Life) Decisions() (ds []Event) {
	for _, e := range l.Events {
		if e.Decision != nil {
			ds = append(ds, e)
		}
	}
	slices.SortStableFunc(ds, func(a, b Event) int { return int(min(max(a.Time-b.Time, -1), 1)) })
	return ds
}

func (l *Life) explainDecisions(b *strings.Builder) {
	ds := l.Decisions()
	if len(ds) == 0 {
		return
	}
	if more := len(ds) - decisions; more > 0 {
		fmt.Fprintf(b, "decisions, the last %d of %d:\n", decisions, len(ds))
		ds = ds[more:]
	} else {
		b.WriteString("decisions:\n")
	}
	for i := range ds {
		fmt.Fprintf(b, "  %s: %s\n", seconds(ds[i].Time), ds[i].Why())
	}
}

// Why says in words what a node decided about a key, and from what. It is empty if the event is no decision.
func (e *Event) Why() string {
	switch d := e.Decision; {
	case d == nil:
		return ""
	case d.Placed != nil:
		return fmt.Sprintf("node %d, the owner, %s: %s", e.Node, d.placed(), d.Placed.why())
	case d.Learned != nil:
		return fmt.Sprintf("node %d %s: %s", e.Node, d.did(), d.Learned.why(d.Done))
	case d.Ended != nil:
		return fmt.Sprintf("node %d %s: %s", e.Node, d.did(), d.Ended.why())
	case d.Planned != nil:
		return fmt.Sprintf("node %d, while it is not the owner, %s: %s", e.Node, d.plans(), d.Planned.why())
	}
	return ""
}

// placed says what an owner did.
func (d *Decision) placed() string {
	switch {
	case d.Done == MoveTo:
		return fmt.Sprintf("moved the key to node %d", d.To)
	case d.Done == GiveCopy:
		return fmt.Sprintf("gave node %d a replica", d.Placed.Asker)
	case d.Placed.Asked == Stay:
		return "kept the key"
	}
	return fmt.Sprintf("kept the key and refused node %d", d.Placed.Asker)
}

// did says what a node did that does not own the key.
func (d *Decision) did() string {
	switch d.Done {
	case AskCopy:
		return "asked for a replica"
	case AskKey:
		return "asked for the key"
	case BidFor:
		return "told the owner how much it changes the key"
	case EndCopy:
		return "gave its replica up"
	}
	return "asked for nothing"
}

// plans says how a node gets the key whenever a worker announces it and the key is elsewhere. It may be the owner all the time.
func (d *Decision) plans() string {
	switch d.Done {
	case AskCopy:
		return "asks for a replica"
	case AskKey:
		return "asks for the key"
	case FetchAhead:
		return "fetches the value ahead of each use, and asks for no copy"
	}
	return "asks for nothing"
}

func (p *Placed) why() string {
	var because []string
	switch {
	case p.Bid:
		changes := uint64(max(p.Present, p.Since) - p.Since)
		because = append(because, fmt.Sprintf("of %d changes since version %d, node %d, which did not announce it in time, made %d", changes, p.Since, p.Asker, p.Pushes))
	case p.Asked == AskCopy:
		because = append(because, fmt.Sprintf("node %d asked for a copy", p.Asker))
	case p.Asked == AskKey:
		because = append(because, fmt.Sprintf("node %d asked for the key", p.Asker))
	default:
		because = append(because, "an intent ended, or an update of the only copy came")
	}
	if p.Wanted {
		because = append(because, "workers here want it")
	} else {
		because = append(because, "no worker here wants it")
	}
	switch len(p.Others) {
	case 0:
		because = append(because, "no other node holds or wants a copy")
	case 1:
		because = append(because, fmt.Sprintf("of the others only node %d holds or wants a copy", p.Others[0]))
	default:
		because = append(because, fmt.Sprintf("nodes %s hold or want copies", listed(p.Others)))
	}
	if p.Unmoved && p.Asked == AskCopy && p.Chosen == GiveCopy {
		because = append(because, "the key has never moved")
	}
	if p.Hot {
		because = append(because, "the key is hot")
	}
	if p.Fixed {
		because = append(because, "the key could not move then")
	}
	if p.Full {
		because = append(because, "there was no room to send its row")
	}
	return strings.Join(because, ", ")
}

func listed(nodes []godwit.NodeID) string {
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}

func (l *Learned) why(done Choice) string {
	switch {
	case done == AskCopy || l.Full:
		text := fmt.Sprintf("accesses that were not announced, or not in time, had cost %d there, as much as %d keys in requests of many, in %d that were noticed", l.Cost, l.Cost, l.Seen)
		if l.Patience > 0 {
			text += fmt.Sprintf("; a copy had to earn %d times the usual, because earlier ones did not pay", 1<<l.Patience)
		}
		if l.Full {
			text += "; there was no room for one more copy"
		}
		return text
	case !l.Known:
		return fmt.Sprintf("it made %d pulls and %d pushes elsewhere that were not announced, or not in time, and knows no version of the key to count from", l.Pulls, l.Pushes)
	}
	return fmt.Sprintf("it made %d pulls and %d pushes elsewhere that were not announced, or not in time, since it knows a version", l.Pulls, l.Pushes)
}

func (x *EndedWish) why() string {
	if x.Needed {
		return fmt.Sprintf("its place was needed for another key, and %d accesses used it since it was looked at last", x.Saved)
	}
	return fmt.Sprintf("it had a credit of %d left, then served %d accesses of worth %d each, and rounds exchanged %d records for it, at 2 each", x.Credit, x.Saved, x.Saves, x.Records)
}

func (p *Planned) why() string {
	took := func(ns uint32) string { return time.Duration(ns).Round(time.Microsecond).String() }
	ahead := fmt.Sprintf("; intents are acted on %d clocks ahead", p.Window)
	switch {
	case !p.Step:
		return "it was announced for several steps, or its reads are bounded, or the policy fetches nothing ahead" + ahead
	case p.Long == 0:
		return "the policy fetches nothing ahead" + ahead
	case p.Took == 0:
		return "it is announced for one step, and the worker's steps are taken for long ones until they were measured"
	case p.Took >= p.Long:
		return fmt.Sprintf("it is announced for one step, and the worker's steps take %s at least, no less than %s", took(p.Took), took(p.Long))
	case p.Fetched && p.Took >= p.Long/2:
		return fmt.Sprintf("it is announced for one step, and the worker's steps, which took %s, take %s at least, still more than half of that", took(p.Long), took(p.Took))
	}
	return fmt.Sprintf("the worker's steps take %s, less than %s", took(p.Took), took(p.Long)) + ahead
}
