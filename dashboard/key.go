package dashboard

import (
	"fmt"
	"math"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// mostEntries is how many entries a list of a key's life has at the most.
const mostEntries = 2000

// A lane is what a node had to do with a key.
type lane struct {
	ID        int     `json:"id"`
	Owned     float64 `json:"owned"`
	Moves     int     `json:"moves"`
	Copies    int     `json:"copies"`
	Refreshes int     `json:"refreshes"`
	Intents   int     `json:"intents"`
	Accesses  uint64  `json:"accesses"`
	Missed    uint64  `json:"missed"`

	Intent    [][2]any     `json:"intent"`  // from, to or null
	Replica   [][2]any     `json:"replica"` // likewise
	Refreshed []float64    `json:"refreshed"`
	Accessed  [][4]float64 `json:"accessed"` // from, to, how many, of these missed
	Asked     []float64    `json:"asked"`
	Age       [][2]float64 `json:"age"` // when the replica was refreshed, and how old it was

	fresh, accessed float64 // when it was refreshed, or accesses were counted last
}

// key answers with the life of a key.
func (s *Server) key(r *request) (any, error) {
	run, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	state := ix.State()
	from, to := r.time("from", 0), r.time("to", math.MaxInt64)
	if r.err != nil {
		return nil, r.err
	}
	k, err := trace.FindKey(run.path, state.Header.Tables, r.PathValue("key"))
	if err != nil {
		return nil, missing{strings.TrimPrefix(err.Error(), "trace: ")}
	}
	l, err := ix.Life(r.Context(), k)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := l.Explain(&text, &state.Header); err != nil {
		return nil, err
	}
	lanes := lanesOf(l, state.Header.Nodes, state.To)
	o := object{"owner": nil, "reigns": reigns(l), "events": len(l.Events), "text": strings.Split(strings.TrimRight(text.String(), "\n"), "\n"), "why": why(l, lanes), "decisions": decisionsOf(l)}
	name(o, int64(k), ix.Name(k), state.Header.Tables)
	if n := len(l.Reigns); n > 0 && l.Reigns[n-1].To < 0 {
		o["owner"] = l.Reigns[n-1].Owner
	}
	shortened := false
	for i := range lanes {
		shortened = lanes[i].shorten(seconds(from), seconds(to)) || shortened
	}
	o["nodes"], o["shortened"] = lanes, shortened || len(l.Reigns) > mostEntries
	return o, nil
}

// mostDecisions is how many decisions about a key are told.
const mostDecisions = 100

// decisionsOf returns the last decisions about a key, the last first.
func decisionsOf(l *trace.Life) []object {
	list := []object{}
	for ds := l.Decisions(); len(ds) > 0 && len(list) < mostDecisions; ds = ds[:len(ds)-1] {
		e := &ds[len(ds)-1]
		list = append(list, object{"t": seconds(e.Time), "node": e.Node, "text": e.Why()})
	}
	return list
}

func reigns(l *trace.Life) []object {
	list := []object{}
	for _, r := range l.Reigns[max(0, len(l.Reigns)-mostEntries):] {
		o := object{"epoch": r.Epoch, "owner": r.Owner, "from": seconds(r.From), "to": nil}
		if r.To >= 0 {
			o["to"] = seconds(r.To)
		}
		list = append(list, o)
	}
	return list
}

// lanesOf returns the lanes of a life, for each node one. end is the last time of the trace, in ns.
func lanesOf(l *trace.Life, nodes int, end int64) []lane {
	lanes := make([]lane, nodes)
	for n := range lanes {
		lanes[n] = lane{ID: n, Intent: [][2]any{}, Replica: [][2]any{}, Refreshed: []float64{}, Accessed: [][4]float64{}, Asked: []float64{}, Age: [][2]float64{}}
	}
	whole := int64(0)
	for _, r := range l.Reigns {
		if r.To < 0 {
			r.To = max(end, r.From)
		}
		lanes[r.Owner].Owned += float64(r.To - r.From)
		whole += max(0, r.To-r.From)
	}
	for i := range l.Events {
		lanes[l.Events[i].Node].add(&l.Events[i])
	}
	for n := range lanes {
		lanes[n].Owned /= float64(max(1, whole))
	}
	return lanes
}

// add takes note of an event, in the order in which they happened at the node.
func (x *lane) add(e *trace.Event) {
	t := seconds(e.Time)
	switch e.Kind {
	case trace.Arrived:
		x.Moves++
		end(x.Replica, t) // it is part of the main copy
	case trace.Copied:
		x.Copies++
		x.Replica, x.fresh = append(x.Replica, [2]any{t, nil}), t
	case trace.Refreshed:
		x.Refreshes++
		x.Refreshed, x.Age, x.fresh = append(x.Refreshed, t), append(x.Age, [2]float64{t, t - x.fresh}), t
	case trace.RefreshCount:
		x.Refreshes += int(e.N)
		if n := len(x.Replica); n > 0 && x.Replica[n-1][1] == nil { // and so it is not known when it was refreshed, but about how often
			x.Refreshed, x.Age, x.fresh = append(x.Refreshed, t), append(x.Age, [2]float64{t, (t - x.fresh) / float64(max(1, e.N))}), t
		}
	case trace.Ended:
		end(x.Replica, t)
	case trace.Wanted:
		x.Intents++
		x.Intent = append(x.Intent, [2]any{t, nil})
	case trace.Unwanted:
		end(x.Intent, t)
	case trace.Asked:
		x.Asked = append(x.Asked, t)
	case trace.Accessed:
		x.Accesses += uint64(e.N)
		x.Accessed = append(x.Accessed, [4]float64{max(x.accessed, t-1), t, float64(e.N), 0})
		x.accessed = t
	case trace.Missed:
		x.Missed += uint64(e.N)
		if n := len(x.Accessed); n > 0 {
			x.Accessed[n-1][3] += float64(e.N)
		}
	}
}

// end ends the last span of a list, if it has not.
func end(spans [][2]any, t float64) {
	if n := len(spans); n > 0 && spans[n-1][1] == nil {
		spans[n-1][1] = t
	}
}

// shorten leaves of the lists what lies within a range of time, and of many entries some, and reports whether there
// were more.
func (x *lane) shorten(from, to float64) (short bool) {
	within := func(a, b float64) bool { return b >= from && a <= to }
	span := func(s [2]any) bool {
		b, ended := s[1].(float64)
		return within(s[0].(float64), b) || !ended && s[0].(float64) <= to
	}
	x.Intent, short = thin(x.Intent, short, span)
	x.Replica, short = thin(x.Replica, short, span)
	at := func(t float64) bool { return within(t, t) }
	x.Refreshed, short = thin(x.Refreshed, short, at)
	x.Asked, short = thin(x.Asked, short, at)
	x.Age, short = thin(x.Age, short, func(a [2]float64) bool { return at(a[0]) })
	x.Accessed, short = thin(x.Accessed, short, func(a [4]float64) bool { return within(a[0], a[1]) })
	return short
}

// thin returns the entries that are wanted, evenly chosen where there are too many.
func thin[T any](s []T, before bool, wanted func(T) bool) (few []T, short bool) {
	few = []T{}
	for _, x := range s {
		if wanted(x) {
			few = append(few, x)
		}
	}
	if len(few) <= mostEntries {
		return few, before
	}
	for i := range mostEntries {
		few[i] = few[i*len(few)/mostEntries]
	}
	return few[:mostEntries], true
}

// why says why a key is where it is, from what nodes did.
func why(l *trace.Life, lanes []lane) string {
	if len(l.Reigns) == 0 {
		return "No node told that it owns the key: nobody used it since the trace began, or it is not traced."
	}
	last := l.Reigns[len(l.Reigns)-1]
	var b strings.Builder
	switch {
	case last.To >= 0:
		fmt.Fprintf(&b, "The key left node %d at %.3f s and has not arrived yet.", last.Owner, seconds(last.To))
		return b.String()
	case len(l.Reigns) == 1 && last.Epoch == 0:
		fmt.Fprintf(&b, "The key is at node %d, its home, and never moved", last.Owner)
	default:
		fmt.Fprintf(&b, "The key came to node %d at %.3f s%s", last.Owner, seconds(last.From), reason(l, last.Owner, last.From))
	}
	others := others(lanes, last.Owner)
	switch {
	case len(others) == 0:
		b.WriteString(": no other node accessed it.")
	default:
		fmt.Fprintf(&b, ". %s.", strings.Join(others, ". "))
	}
	return b.String()
}

// reason says what the new owner had announced when a key came.
func reason(l *trace.Life, node godwit.NodeID, at int64) string {
	wanted, asked := false, false
	for i := range l.Events {
		if e := &l.Events[i]; e.Node == node && e.Time <= at {
			switch e.Kind {
			case trace.Wanted:
				wanted = true
			case trace.Unwanted:
				wanted = false
			case trace.Asked:
				asked = true
			}
		}
	}
	switch {
	case wanted:
		return ", because a worker there had announced that it would use it"
	case asked:
		return ", because the node had asked for it"
	}
	return ""
}

// others says what nodes that do not own a key have of it.
func others(lanes []lane, owner godwit.NodeID) (list []string) {
	for n, x := range lanes {
		if n == int(owner) || x.Accesses == 0 && x.Copies == 0 {
			continue
		}
		has := len(x.Replica) > 0 && x.Replica[len(x.Replica)-1][1] == nil
		switch {
		case has:
			list = append(list, fmt.Sprintf("Node %d has a replica, because it used the key at the same time as others (%s, %s)", n, plural.Of(x.Accesses, "access", "accesses"), plural.Of(x.Refreshes, "refresh", "refreshes")))
		case x.Copies > 0:
			list = append(list, fmt.Sprintf("Node %d had %s, and gave up the last when no intent was left (%s)", n, plural.Of(x.Copies, "replica"), plural.Of(x.Accesses, "access", "accesses")))
		default:
			list = append(list, fmt.Sprintf("Node %d accessed it %s, %d of them by waiting or asking", n, plural.Of(x.Accesses, "time"), x.Missed))
		}
	}
	return list
}
