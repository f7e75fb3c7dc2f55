package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	ps "github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A look is what "godwit top" shows of a run. As JSON it is what --json prints.
type look struct {
	Run      string             `json:"run"`
	Policy   string             `json:"policy"`
	Task     string             `json:"task"`
	Live     bool               `json:"live"`
	Failed   string             `json:"failed"`   // why the run failed; empty: it did not, or goes on
	Progress string             `json:"progress"` // epochs, loss and metric, in words
	Nodes    []nodeLook         `json:"nodes"`
	Whole    []record.Whole     `json:"whole"`  // tables, all nodes together
	Tables   []record.Table     `json:"tables"` // of traced keys, all nodes together
	Hot      []keyLook          `json:"hot"`
	Waste    map[string]float64 `json:"waste"` // shares of 1
	Findings []diagnose.Finding `json:"findings"`
	Damaged  int                `json:"damaged"` // lines that could not be read

	told, crowded bool  // some node told how it trains; why workers wait is not known
	unnamed       error // why the trace, which has the names of keys, cannot be read; nil: it can, or there is none
}

// A nodeLook is a node in the last seconds. Shares are of its workers' time.
type nodeLook struct {
	Node      int                `json:"node"`
	Host      string             `json:"host"`
	Items     float64            `json:"items_per_second"`
	Compute   float64            `json:"compute"`
	Waits     map[string]float64 `json:"waits"`
	Server    float64            `json:"server"`
	GC        float64            `json:"gc"`
	Processor float64            `json:"processors"` // that it used
	Memory    uint64             `json:"memory"`     // bytes that it has
	Sent      float64            `json:"sent_per_second"`
	Local     float64            `json:"no_message"` // share of accesses
	Owned     int                `json:"owned"`
	Replicas  int                `json:"replicas"`
}

// A keyLook is a traced key, all nodes together.
type keyLook struct {
	Key  ps.Key `json:"key"`
	Name string `json:"name"`
	trace.Use
}

// lately is for how long it is said what held the run up.
const lately = time.Minute

// recently is for how long figures of nodes are taken together.
const recently = 10 * time.Second

// hotShown is how many hot keys are shown.
const hotShown = 10

func lookAt(r *record.Run) *look {
	in := diagnose.Recent(r, lately)
	l := &look{Run: r.About.Run, Policy: r.About.Policy, Live: r.Live(), Failed: r.Failure(), Waste: map[string]float64{}, Findings: diagnose.Diagnose(in), Damaged: r.Bad, told: len(in.Nodes) > 0, crowded: in.Crowded()}
	if s := r.Start(); s != nil {
		l.Task = s.Task
	}
	l.Progress = progress(r, l.Failed)
	var waste record.Waste
	hot := map[ps.Key]*keyLook{}
	for i, n := range r.Nodes {
		if n == nil || len(n.Samples) == 0 {
			continue
		}
		l.Run, l.Policy = n.Header.Run, n.Header.Policy
		last := &n.Samples[len(n.Samples)-1]
		first := last
		for j := len(n.Samples) - 2; j >= 0 && last.Time-first.Time < int64(recently); j-- {
			first = &n.Samples[j]
		}
		l.Nodes = append(l.Nodes, lookAtNode(i, n, first, last))
		add(&waste, &last.Waste)
		l.tables(last)
		for _, k := range last.Hot {
			if hot[k.Key] == nil {
				hot[k.Key] = &keyLook{Key: k.Key}
			}
			plusUse(&hot[k.Key].Use, k.Use)
		}
	}
	l.keys(hot, r.Dir)
	share := func(name string, part, all uint64) {
		if all > 0 {
			l.Waste[name] = float64(part) / float64(all)
		}
	}
	share("refreshes unread", waste.Unread, waste.Refreshes)
	share("replicas dropped unread", waste.DroppedUnread, waste.Drops)
	share("intents unused", waste.Unused, waste.Intents)
	return l
}

func lookAtNode(i int, n *record.Node, first, last *record.Sample) nodeLook {
	u := last.Since(first, n.Header.Workers)
	all, took := max(u.Seconds*float64(n.Header.Workers), 1e-9), max(u.Seconds, 1e-9)
	x := nodeLook{Node: i, Host: n.Header.Host, Items: float64(u.Items) / took, Compute: u.Compute / all, Waits: map[string]float64{}, Server: u.Server / all, GC: u.GC / all,
		Processor: float64(last.Process.Processor-first.Process.Processor) / 1e9 / took, Memory: last.Process.Used,
		Sent: float64(last.SentBytes-first.SentBytes) / took, Owned: last.Owned, Replicas: last.Replicas}
	for cause, s := range u.Waits {
		x.Waits[cause] = s / all
	}
	if n := last.Accesses.All() - first.Accesses.All(); n > 0 {
		x.Local = float64(last.Accesses.Local+last.Accesses.Replica-first.Accesses.Local-first.Accesses.Replica) / float64(n)
	}
	return x
}

// progress says in words how far a run is, which failed or did not.
func progress(r *record.Run, failed string) string {
	var parts []string
	for _, e := range slices.Backward(r.Events) {
		if e.Epoch != nil {
			parts = append(parts, fmt.Sprintf("epoch %d/%d, loss %.4f", e.Epoch.Epoch, e.Epoch.Of, e.Epoch.Loss))
			break
		}
	}
	for _, e := range slices.Backward(r.Events) {
		if e.Evaluation != nil && len(e.Evaluation.Metrics) > 0 {
			m := e.Evaluation.Metrics[0]
			parts = append(parts, fmt.Sprintf("%s %s %.4f", trace.Printable(m.Split), trace.Printable(m.Name), m.Value))
			break
		}
	}
	if failed != "" {
		parts = append(parts, "failed: "+trace.Printable(strings.ReplaceAll(failed, "\n", "; ")))
	} else if e := r.End(); e != nil {
		parts = append(parts, "ended: "+trace.Printable(e.Reason))
	}
	return strings.Join(parts, "; ")
}

func (l *look) tables(s *record.Sample) {
	for i, t := range s.Whole {
		if i == len(l.Whole) {
			l.Whole = append(l.Whole, record.Whole{Name: t.Name})
		}
		x := &l.Whole[i]
		x.Main += t.Main
		x.Replica += t.Replica
		x.Missing += t.Missing
		x.Moves += t.Moves
		x.Copies += t.Copies
		x.Drops += t.Drops
		x.Refreshes += t.Refreshes
	}
	for _, t := range s.Tables {
		i := slices.IndexFunc(l.Tables, func(o record.Table) bool { return o.Name == t.Name })
		if i < 0 {
			i = len(l.Tables)
			l.Tables = append(l.Tables, record.Table{Name: t.Name})
		}
		plusUse(&l.Tables[i].Use, t.Use)
	}
}

// keys takes the hottest keys, with their names where the run knows them.
func (l *look) keys(hot map[ps.Key]*keyLook, dir string) {
	for _, k := range hot {
		l.Hot = append(l.Hot, *k)
	}
	slices.SortFunc(l.Hot, func(a, b keyLook) int {
		return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(b.Refreshes, a.Refreshes), cmp.Compare(a.Key, b.Key))
	})
	l.Hot = l.Hot[:min(len(l.Hot), hotShown)]
	t, err := trace.Open(dir)
	if err != nil { // keys have numbers
		if !trace.IsEmpty(err) {
			l.unnamed = err
		}
		return
	}
	var keys []ps.Key
	for _, k := range l.Hot {
		keys = append(keys, k.Key)
	}
	names, err := t.NamesOf(keys)
	for i, k := range l.Hot {
		l.Hot[i].Name = trace.NameOf(k.Key, t.Header.Tables)
		if name := names[k.Key]; err == nil && name != "" {
			l.Hot[i].Name = trace.Printable(name)
		}
	}
}

func plusUse(to *trace.Use, u trace.Use) {
	to.Accesses += u.Accesses
	to.Missed += u.Missed
	to.Moves += u.Moves
	to.Copies += u.Copies
	to.Refreshes += u.Refreshes
}

func add(to, w *record.Waste) {
	to.Refreshes += w.Refreshes
	to.Unread += w.Unread
	to.Drops += w.Drops
	to.DroppedUnread += w.DroppedUnread
	to.Intents += w.Intents
	to.Unused += w.Unused
}

// String returns the look as people read it.
func (l *look) String() string {
	var b strings.Builder
	state := "not under way"
	if l.Live {
		state = "under way"
	}
	fmt.Fprintf(&b, "run %s, task %s, policy %s, %s\n%s\n\n", trace.Printable(l.Run), trace.Printable(cmp.Or(l.Task, "of a program")), trace.Printable(l.Policy), state, l.Progress)
	switch {
	case len(l.Findings) > 0:
		f := l.Findings[0]
		fmt.Fprintf(&b, "%s: %s\n  advice: %s\n\n", f.Ill, f.Text, f.Advice)
	case !l.told:
		b.WriteString("no node has told how it trained in the last minute\n\n")
	case l.crowded:
		b.WriteString("in the last minute no ill was found, but processors were taken, so it is not known why workers wait\n\n")
	case l.Failed != "":
		b.WriteString("in the minute before, nothing was found that held it up\n\n")
	default:
		b.WriteString("in the last minute the run was well\n\n")
	}
	l.writeNodes(&b)
	l.writeTables(&b)
	l.writeKeys(&b)
	if l.unnamed != nil {
		fmt.Fprintf(&b, "\nkeys have no names: %s\n", trace.Printable(l.unnamed.Error()))
	}
	if l.Damaged > 0 {
		fmt.Fprintf(&b, "\n%s", damaged(l.Damaged))
	}
	var waste []string
	for _, name := range []string{"refreshes unread", "replicas dropped unread", "intents unused"} {
		if x, ok := l.Waste[name]; ok {
			waste = append(waste, fmt.Sprintf("%s %.0f %%", name, 100*x))
		}
	}
	if len(waste) > 0 {
		fmt.Fprintf(&b, "\nwaste, of a sample of the keys: %s\n", strings.Join(waste, ", "))
	}
	return b.String()
}

func (l *look) writeNodes(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "node\titems/s\tcompute\tanswers\tbarrier\tother waits\tserver\tgc\tprocessors\tmemory\tsent/s\tno message\tkeys\treplicas\t")
	for _, n := range l.Nodes {
		others := 0.0
		for cause, s := range n.Waits {
			if cause != "answers" && cause != "barrier" {
				others += s
			}
		}
		fmt.Fprintf(t, "%d\t%.0f\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f %%\t%.2f\t%.0f MB\t%.2f MB\t%.1f %%\t%d\t%d\t\n", n.Node, n.Items, 100*n.Compute, 100*n.Waits["answers"], 100*n.Waits["barrier"], 100*others,
			100*n.Server, 100*n.GC, n.Processor, float64(n.Memory)/1e6, n.Sent/1e6, 100*n.Local, n.Owned, n.Replicas)
	}
	_ = t.Flush() // a Builder takes everything
}

func (l *look) writeTables(b *strings.Builder) {
	if len(l.Whole) == 0 {
		return
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "table\taccesses\tmain\treplica\tmissing\tmoves\treplicas\tdropped\trefreshes\t")
	for _, x := range l.Whole {
		all := x.Main + x.Replica + x.Missing
		share := func(n uint64) float64 { return 100 * float64(n) / float64(max(1, all)) }
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%d\t%d\t%d\t%d\t\n", trace.Printable(x.Name), all, share(x.Main), share(x.Replica), share(x.Missing), x.Moves, x.Copies, x.Drops, x.Refreshes)
	}
	_ = t.Flush() // a Builder takes everything
}

func (l *look) writeKeys(b *strings.Builder) {
	if len(l.Tables) == 0 {
		return
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, u trace.Use) {
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%d\t%d\t%d\t\n", name, u.Accesses, 100*float64(u.Missed)/float64(max(1, u.Accesses)), u.Moves, u.Copies, u.Refreshes)
	}
	fmt.Fprintln(t, "traced keys\taccesses\tmissed\tmoves\treplicas\trefreshes\t")
	for _, x := range l.Tables {
		row("table "+trace.Printable(x.Name), x.Use)
	}
	for _, k := range l.Hot {
		row("key "+cmp.Or(k.Name, fmt.Sprint(k.Key)), k.Use)
	}
	_ = t.Flush()
}

// first returns the line nearest to top that can be the first one which a terminal of a height shows.
func first(text string, height, top int) int {
	return max(0, min(top, strings.Count(strings.TrimRight(text, "\n"), "\n")+2-height))
}

// fold breaks the sentences of a text between words where a terminal of a width, if it is known, has no room for them. Lines of tables, which have two spaces between columns, stay as they are.
func fold(text string, width int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if strings.Contains(line[len(indent):], "  ") {
			b.WriteString(line)
			continue
		}
		used := 0
		for i, word := range strings.Fields(line) {
			n := len([]rune(word))
			switch {
			case i == 0:
				b.WriteString(indent)
				used = len(indent)
			case used+1+n > width:
				b.WriteString("\n" + indent)
				used = len(indent)
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cut returns the lines of a text that a terminal of a size has room for, from one on. A size of 0
// is not known.
func cut(text string, width, height, top int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if height > 0 {
		top = first(text, height, top)
		lines = lines[top:min(len(lines), top+height-1)]
	}
	for i, l := range lines {
		if r := []rune(l); width > 0 && len(r) > width {
			lines[i] = string(r[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
