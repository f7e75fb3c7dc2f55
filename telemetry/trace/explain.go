package trace

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/plural"
)

// A stay is what a node had to do with a key in all of its life.
type stay struct {
	owned                     time.Duration
	moves, copies, refreshes  int
	counted                   int // refreshes that were counted only
	intents, accesses, missed int64
}

// shown is how many of a key's moves Explain lists at the most.
const shown = 20

// Explain tells the life in words.
func (l *Life) Explain(w io.Writer, h *Header) error {
	var b strings.Builder
	fmt.Fprintf(&b, "key %s of run %s, policy %s, %s\n", NameOf(l.Key, h.Tables), Printable(h.Run), Printable(h.Policy), plural.Of(h.Nodes, "node"))
	if len(l.Events) == 0 {
		l.explainLost(&b)
		l.explainSilent(&b)
		fmt.Fprintf(&b, "no event: it is not traced (%s), or nobody used it\n", Printable(h.Traced))
		_, err := io.WriteString(w, b.String())
		return err
	}
	end := l.end()
	l.explainReigns(&b, end)
	l.explainNodes(&b, h.Nodes, end)
	l.explainDecisions(&b)
	l.explainThinned(&b, end, h.Tables)
	l.explainLost(&b)
	l.explainSilent(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// NameOf returns a key as people know it: table:row.
func NameOf(k godwit.Key, tables []Table) string {
	if row := flagOf(k, tables); row != fmt.Sprint(k) {
		return fmt.Sprintf("%d (%s)", k, Printable(row))
	}
	return fmt.Sprint(k)
}

// flagOf returns a key as ParseKeys reads it.
func flagOf(k godwit.Key, tables []Table) string {
	if t := tableOf(k, tables); t >= 0 {
		return fmt.Sprintf("%s:%d", tables[t].Name, k-tables[t].First)
	}
	return fmt.Sprint(k)
}

// Printable returns a text of a file without what terminals take for commands.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// end returns the time of the last event.
func (l *Life) end() (last int64) {
	for _, e := range l.Events {
		last = max(last, e.Time)
	}
	return last
}

func (l *Life) explainReigns(b *strings.Builder, end int64) {
	if len(l.Reigns) == 0 {
		b.WriteString("no node told that it owned the key: its main copy was made before the trace began, and never moved\n")
		return
	}
	last := l.Reigns[len(l.Reigns)-1]
	if last.To < 0 {
		fmt.Fprintf(b, "it moved %s; since %s it is at node %d\n", plural.Of(len(l.Reigns)-1, "time"), seconds(last.From), last.Owner)
	} else {
		fmt.Fprintf(b, "it moved %s; at %s it left node %d, and no node told of its arrival\n", plural.Of(len(l.Reigns)-1, "time"), seconds(last.To), last.Owner)
	}
	from := max(0, len(l.Reigns)-shown)
	if from > 0 {
		fmt.Fprintf(b, "the last %d owners:\n", shown)
	}
	for _, r := range l.Reigns[from:] {
		until := r.To
		if until < 0 {
			until = end
		}
		fmt.Fprintf(b, "  epoch %d: node %d from %s, for %s\n", r.Epoch, r.Owner, seconds(r.From), seconds(max(0, until-r.From)))
	}
}

func (l *Life) explainNodes(b *strings.Builder, nodes int, end int64) {
	stays, whole := make([]stay, nodes), time.Duration(0)
	for _, r := range l.Reigns {
		if r.To < 0 {
			r.To = end
		}
		d := time.Duration(max(0, r.To-r.From))
		stays[r.Owner].owned += d
		whole += d
	}
	for _, e := range l.Events {
		stays[e.Node].count(&e)
	}
	for n, s := range stays {
		if s == (stay{}) {
			continue
		}
		fmt.Fprintf(b, "node %d: owned it %.0f %% of the time, it moved here %s; %s, refreshed %s; %s; %s", n,
			100*float64(s.owned)/float64(max(1, whole)), plural.Of(s.moves, "time"), plural.Of(s.copies, "replica"), plural.Of(s.refreshes, "time"), plural.Of(s.intents, "intent"), plural.Of(s.accesses, "access", "accesses"))
		if s.missed > 0 {
			fmt.Fprintf(b, ", of which %d had to ask or wait", s.missed)
		}
		if s.counted > 0 {
			fmt.Fprintf(b, "; refreshes: %d were counted by the second, as there were too many of all keys", s.counted)
		}
		b.WriteByte('\n')
	}
}

// explainSilent says of which nodes nothing is known.
func (l *Life) explainSilent(b *strings.Builder) {
	for _, n := range l.Silent {
		fmt.Fprintf(b, "node %d: there is no trace of it in the folder, so what it did is not told\n", n)
	}
}

// explainLost says of which nodes events are lacking.
func (l *Life) explainLost(b *strings.Builder) {
	for _, n := range slices.Sorted(maps.Keys(l.Lost)) {
		fmt.Fprintf(b, "node %d: %d events of all keys are missing, as there were more than the disk or the network took; some may have been of this one\n", n, l.Lost[n])
	}
}

// explainThinned says for how long events are lacking.
func (l *Life) explainThinned(b *strings.Builder, end int64, tables []Table) {
	sums := map[godwit.NodeID]int64{}
	for _, g := range l.Thinned {
		to := g.To
		if to < 0 {
			to = max(g.From, end)
		}
		sums[g.Node] += to - g.From
	}
	for _, n := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(b, "node %d wrote no intents, requests and decisions of the key for %s, as keys changed too often; --trace-keys %s has them all written\n", n, seconds(sums[n]), Printable(flagOf(l.Key, tables)))
	}
}

func (s *stay) count(e *Event) {
	switch e.Kind {
	case Arrived:
		s.moves++
	case Copied:
		s.copies++
	case Refreshed:
		s.refreshes++
	case RefreshCount:
		s.refreshes += int(e.N)
		s.counted += int(e.N)
	case Wanted:
		s.intents++
	case Accessed:
		s.accesses += int64(e.N)
	case Missed:
		s.missed += int64(e.N)
	}
}

func seconds(nanos int64) string { return fmt.Sprintf("%.3f s", float64(nanos)/1e9) }
